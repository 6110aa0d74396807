import pandas as pd
import numpy as np
from scipy.stats import randint
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import RandomizedSearchCV, StratifiedShuffleSplit
from sklearn.preprocessing import LabelEncoder
from sklearn.metrics import log_loss  #= packages

def main():
    train = pd.read_csv('/workdir/leaf-classification/prepared/public/train.csv')  #= data
    test = pd.read_csv('/workdir/leaf-classification/prepared/public/test.csv')  #= data
    ids = test.pop('id')
    encoder = LabelEncoder().fit(train['species'])
    y = encoder.transform(train['species'])
    X = train.drop(columns=['id', 'species']).values

    sss = StratifiedShuffleSplit(n_splits=1, test_size=0.2, random_state=0)
    tr, va = next(sss.split(X, y))

    param_dist = {'n_estimators': randint(200, 800), 'max_features': ['sqrt', 'log2'], 'min_samples_split': randint(2, 6)}
    rs = RandomizedSearchCV(ExtraTreesClassifier(n_jobs=-1), param_dist, n_iter=8, scoring='neg_log_loss', cv=3, random_state=0)  #= model
    rs.fit(X[tr], y[tr])  #= trained
    print('best cv', rs.best_score_, rs.best_params_)  #= test-loss

    clf = CalibratedClassifierCV(rs.best_estimator_, method='isotonic', cv=3)  #= model
    clf.fit(X[tr], y[tr])  #= trained
    for part, idx in (('train', tr), ('valid', va)):  #= train-loss, test-loss
        print(part, 'log loss', log_loss(y[idx], clf.predict_proba(X[idx])))  #= train-loss

    proba = clf.predict_proba(test.values)  #= predicted
    submission = pd.DataFrame(proba, columns=encoder.classes_)
    submission.insert(0, 'id', ids)
    submission.to_csv('submission.csv', index=False)

main()  #= data?, model?, trained?, train-loss?, test-loss?, predicted?
