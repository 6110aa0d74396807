import gc
import numpy as np
import pandas as pd
import lightgbm as lgb
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold  #= packages


class Trainer:
    def __init__(self, params, n_splits=5, seed=0):
        self.params = params
        self.n_splits = n_splits
        self.seed = seed
        self.models = []
        self.oof = None

    def fit(self, X, y):
        self.oof = np.zeros(len(X))
        folds = StratifiedKFold(self.n_splits, shuffle=True, random_state=self.seed)
        for i, (a, b) in enumerate(folds.split(X, y)):
            model = lgb.LGBMClassifier(**self.params)  #= model
            model.fit(X.iloc[a], y.iloc[a])  #= trained
            self.oof[b] = model.predict_proba(X.iloc[b])[:, 1]
            print(f"[fold {i}] auc={roc_auc_score(y.iloc[b], self.oof[b]):.5f}")  #= test-loss
            self.models.append(model)
            gc.collect()
        return self

    def predict(self, X):
        return np.mean([m.predict_proba(X)[:, 1] for m in self.models], axis=0)


def featurize(df):
    df = df.copy()
    for i in range(10):
        df[f"c{i}"] = df["f_27"].str[i].map(ord) - 65
    return df.drop(columns=["f_27"])


if __name__ == "__main__":
    train = featurize(pd.read_csv("train.csv"))  #= data
    test = featurize(pd.read_csv("test.csv"))  #= data
    y = train.pop("target")
    trainer = Trainer({"n_estimators": 800, "num_leaves": 127}, n_splits=5)  #= model?
    trainer.fit(train.drop(columns="id"), y)  #= model, trained, test-loss
    print("oof auc", roc_auc_score(y, trainer.oof))  #= test-loss
    test["target"] = trainer.predict(test.drop(columns="id"))  #= predicted
    test[["id", "target"]].to_csv("submission.csv", index=False)
