import pandas as pd, lightgbm as lgb, numpy as np
from sklearn.model_selection import KFold  #> 1
train = pd.read_csv("train.csv"); test = pd.read_csv("test.csv")  #> 2
target = np.log1p(train.pop("formation_energy"))
kf = KFold(5)
preds = []
scores = []
for tr, va in kf.split(train):
    dtrain = lgb.Dataset(train.iloc[tr], target.iloc[tr])
    dvalid = lgb.Dataset(train.iloc[va], target.iloc[va])
    booster = lgb.train({"objective": "regression"}, dtrain, valid_sets=[dvalid])  #> 3 5
    p = booster.predict(train.iloc[va])
    rmsle = np.sqrt(np.mean((p - target.iloc[va]) ** 2))  #> 6
    scores.append(rmsle)
    preds.append(np.expm1(booster.predict(test)))  #> 7
print(np.mean(scores))
pd.DataFrame({"id": test.id, "p": np.mean(preds, axis=0)}).to_csv("submission.csv")
