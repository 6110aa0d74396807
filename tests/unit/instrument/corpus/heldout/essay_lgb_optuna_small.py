import optuna
import numpy as np
import pandas as pd
import lightgbm as lgb
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.decomposition import TruncatedSVD
from sklearn.model_selection import train_test_split
from sklearn.metrics import cohen_kappa_score  #= packages

train = pd.read_csv('/workdir/learning-agency-lab-automated-essay-scoring-2/prepared/public/train.csv')  #= data
test = pd.read_csv('/workdir/learning-agency-lab-automated-essay-scoring-2/prepared/public/test.csv')  #= data

tfidf = TfidfVectorizer(max_features=20000, ngram_range=(1, 2))
svd = TruncatedSVD(n_components=100, random_state=0)
X = svd.fit_transform(tfidf.fit_transform(train['full_text']))
X_test = svd.transform(tfidf.transform(test['full_text']))
y = train['score'].values
X_tr, X_va, y_tr, y_va = train_test_split(X, y, test_size=0.2, random_state=0)


def qwk(y_true, raw):
    return cohen_kappa_score(y_true, np.clip(np.round(raw), 1, 6).astype(int), weights='quadratic')


def objective(trial):
    params = {
        'num_leaves': trial.suggest_int('num_leaves', 15, 127),
        'learning_rate': trial.suggest_float('learning_rate', 0.01, 0.2, log=True),
        'n_estimators': trial.suggest_int('n_estimators', 100, 600),
    }
    m = lgb.LGBMRegressor(**params, verbose=-1)  #= model
    m.fit(X_tr, y_tr)  #= trained
    return qwk(y_va, m.predict(X_va))  #= test-loss


study = optuna.create_study(direction='maximize')
study.optimize(objective, n_trials=20)  #= model, trained, test-loss
print('Best params:', study.best_params)
print('Best QWK:', study.best_value)  #= test-loss

final_model = lgb.LGBMRegressor(**study.best_params)  #= model
final_model.fit(X, y)  #= trained
print('Train QWK:', qwk(y, final_model.predict(X)))  #= train-loss
test['score'] = np.clip(np.round(final_model.predict(X_test)), 1, 6).astype(int)  #= predicted
test[['essay_id', 'score']].to_csv('submission.csv', index=False)
