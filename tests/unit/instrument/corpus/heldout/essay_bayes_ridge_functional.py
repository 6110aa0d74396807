from functools import partial
from pathlib import Path
import numpy as np
import pandas as pd
from sklearn.linear_model import BayesianRidge
from sklearn.metrics import cohen_kappa_score, mean_absolute_error
from sklearn.model_selection import ShuffleSplit  #= packages

ROOT = Path('/workdir/learning-agency-lab-automated-essay-scoring-2/prepared/public')
qwk = partial(cohen_kappa_score, weights='quadratic')

def to_grade(raw):
    return np.clip(raw.round(), 1, 6).astype(int)

def describe(text):
    words = text.split()
    return [len(text), len(words), len(set(words)), text.count('.'), text.count(','), text.count('\n'),
            np.mean([len(w) for w in words])]

def table(name):
    frame = pd.read_csv(ROOT / f'{name}.csv')  #= data
    return frame, np.array([describe(t) for t in frame['full_text']])

train, X = table('train')  #= data
test, X_test = table('test')  #= data
y = train['score'].to_numpy()

kappas, maes = [], []
for fit, check in ShuffleSplit(5, test_size=0.2, random_state=0).split(X):
    br = BayesianRidge()  #= model
    br.fit(X[fit], y[fit])  #= trained
    maes.append(mean_absolute_error(y[fit], br.predict(X[fit])))  #= train-loss
    kappas.append(qwk(y[check], to_grade(br.predict(X[check]))))  #= test-loss
print(f'train mae {np.mean(maes):.3f}  qwk {np.mean(kappas):.3f}')  #= train-loss, test-loss

br = BayesianRidge().fit(X, y)  #= model, trained
pd.DataFrame({'essay_id': test['essay_id'], 'score': to_grade(br.predict(X_test))}).to_csv('submission.csv', index=False)  #= predicted
