import numpy as np, pandas as pd
from sklearn.model_selection import RepeatedKFold
from sklearn.metrics import roc_auc_score
import lightgbm as lgb  #> 1


class Config:
    path = "data/"


def get_data():
    tr = pd.read_csv(Config.path + "train.csv")  #> 2
    ts = pd.read_csv(Config.path + "test.csv")  #> 2
    return tr, ts


def train_and_predict(X, y, X_test, params):
    oof, pred = np.zeros(len(X)), np.zeros(len(X_test))
    for a, b in RepeatedKFold().split(X, y):
        model = lgb.LGBMClassifier(**params)  #> 3
        model.fit(X.iloc[a], y.iloc[a])  #> 5
        oof[b] = model.predict_proba(X.iloc[b])[:, 1]
        pred += model.predict_proba(X_test)[:, 1] / 5  #> 7
        print("train", roc_auc_score(y.iloc[a], model.predict_proba(X.iloc[a])[:, 1]))  #> 4
    auc = roc_auc_score(y, oof)  #> 6
    return pred, auc


train, submission = get_data()
prediction, auc = train_and_predict(train, train.y, submission, {})
print(f"AUC {auc:.4f}")
