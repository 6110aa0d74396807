import pandas as pd
import numpy as np
from lightgbm import LGBMClassifier
from xgboost import XGBClassifier
from catboost import CatBoostClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.metrics import roc_auc_score  #= packages

train = pd.read_csv('train.csv')  #= data
test = pd.read_csv('test.csv')  #= data
X = train.select_dtypes('number').drop(columns=['id', 'target'])
y = train['target']
X_test = test[X.columns]

def fit_predict(make, X, y, X_test, n_splits=5):
    oof = np.zeros(len(X))
    out = np.zeros(len(X_test))
    for tr, va in StratifiedKFold(n_splits, shuffle=True, random_state=0).split(X, y):
        est = make()  #= model
        est.fit(X.iloc[tr], y.iloc[tr])  #= trained
        oof[va] = est.predict_proba(X.iloc[va])[:, 1]
        out += est.predict_proba(X_test)[:, 1] / n_splits  #= predicted
    return oof, out

makers = {
    'lgb': lambda: LGBMClassifier(n_estimators=500),
    'xgb': lambda: XGBClassifier(n_estimators=500, tree_method='hist'),
    'cat': lambda: CatBoostClassifier(iterations=500, verbose=0),
}
oofs, preds = {}, {}
for name, make in makers.items():
    oofs[name], preds[name] = fit_predict(make, X, y, X_test)  #= model, trained, predicted
    print(name, roc_auc_score(y, oofs[name]))  #= test-loss

blend = sum(preds.values()) / len(preds)  #= predicted
print('blend', roc_auc_score(y, sum(oofs.values()) / len(oofs)))  #= test-loss
pd.DataFrame({'id': test['id'], 'target': blend}).to_csv('submission.csv', index=False)
