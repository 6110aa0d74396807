import sys
import json
import pandas as pd
import numpy as np

try:
    from lightgbm import LGBMClassifier
    HAS_LGB = True
except ImportError:
    from sklearn.ensemble import GradientBoostingClassifier
    HAS_LGB = False

from sklearn.model_selection import StratifiedKFold
from sklearn.metrics import roc_auc_score  #= packages

try:
    train = pd.read_json('train.json')  #= data
    test = pd.read_json('test.json')  #= data
except FileNotFoundError as e:
    print('Missing file', e)
    sys.exit(1)

feature_cols = [c for c in test.columns if test[c].dtype != object]
X = train[feature_cols].fillna(0)
y = train['requester_received_pizza'].astype(int)
X_test = test[feature_cols].fillna(0)

def get_model():
    if HAS_LGB:
        return LGBMClassifier(n_estimators=100, learning_rate=0.05)
    return GradientBoostingClassifier()

try:
    cv_scores = []
    for tr, te in StratifiedKFold(5).split(X, y):
        m = get_model()  #= model
        m.fit(X.iloc[tr], y.iloc[tr])  #= trained
        cv_scores.append(roc_auc_score(y.iloc[te], m.predict_proba(X.iloc[te])[:, 1]))  #= test-loss
    print('CV:', np.mean(cv_scores))
except Exception as e:
    print('cv failed', e)

model = get_model()  #= model
model.fit(X, y)  #= trained
test['requester_received_pizza'] = model.predict_proba(X_test)[:, 1]  #= predicted
test[['request_id', 'requester_received_pizza']].to_csv('submission.csv', index=False)
