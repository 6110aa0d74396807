import json
import pickle
from pathlib import Path

import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.ensemble import AdaBoostClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import Pipeline  #= packages

CONFIG = {"data": "/workdir/random-acts-of-pizza/prepared/public", "folds": 5, "params": {"n_estimators": 200}}


class TextLength(BaseEstimator, TransformerMixin):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return pd.DataFrame({"t": X["request_title"].str.len(), "b": X["request_text_edit_aware"].str.len()})


def read_json(name):
    path = Path(CONFIG["data"]) / name
    records = json.loads(path.read_text())  #= data
    return pd.DataFrame(records)


def run():
    train = read_json("train.json")  #= data
    test = read_json("test.json")  #= data
    y = train["requester_received_pizza"].astype(int)
    pipe = Pipeline([("len", TextLength()), ("ada", AdaBoostClassifier(**CONFIG["params"]))])  #= model
    cv = StratifiedKFold(CONFIG["folds"], shuffle=True, random_state=1)
    oof = cross_val_predict(pipe, train, y, cv=cv, method="predict_proba")[:, 1]  #= trained?
    print(json.dumps({"oof_auc": roc_auc_score(y, oof)}))  #= test-loss
    pipe.fit(train, y)  #= trained
    with open("model.pkl", "wb") as fh:
        pickle.dump(pipe, fh)
    pred = pipe.predict_proba(test)[:, 1]  #= predicted
    pd.DataFrame({"request_id": test["request_id"], "requester_received_pizza": pred}).to_csv("submission.csv", index=False)


if __name__ == "__main__":
    run()
