import pandas as pd
import xgboost as xgb
from sklearn.model_selection import train_test_split
from sklearn.metrics import roc_auc_score  #= packages

def run(path):
    train = pd.read_csv(f'{path}/train.csv')  #= data
    test = pd.read_csv(f'{path}/test.csv')  #= data
    y = train.pop('target')
    X = train.drop(columns=['id', 'f_27'])
    Xa, Xb, ya, yb = train_test_split(X, y, random_state=0)
    clf = xgb.XGBClassifier(n_estimators=200)  #= model
    clf.fit(Xa, ya)  #= trained
    print('train', roc_auc_score(ya, clf.predict_proba(Xa)[:, 1]))  #= train-loss
    print('valid', roc_auc_score(yb, clf.predict_proba(Xb)[:, 1]))  #= test-loss
    test['target'] = clf.predict_proba(test.drop(columns=['id', 'f_27']))[:, 1]  #= predicted
    test[['id', 'target']].to_csv('submission.csv', index=False)
