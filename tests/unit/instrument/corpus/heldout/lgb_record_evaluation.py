import lightgbm as lgb
import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split  #= packages

train = pd.read_csv("train.csv")  #= data
test = pd.read_csv("test.csv")  #= data
TARGETS = ["formation_energy_ev_natom", "bandgap_energy_ev"]
drop = ["id"] + TARGETS
result = pd.DataFrame({"id": test["id"]})

for t in TARGETS:
    Xtr, Xva, ytr, yva = train_test_split(train.drop(columns=drop), np.log1p(train[t]), test_size=0.2, random_state=1)
    dtrain = lgb.Dataset(Xtr, label=ytr)
    dvalid = lgb.Dataset(Xva, label=yva, reference=dtrain)
    evals = {}
    booster = lgb.train(
        {"objective": "rmse", "verbosity": -1},
        dtrain,
        1000,
        valid_sets=[dtrain, dvalid],
        valid_names=["train", "valid"],
        callbacks=[lgb.early_stopping(30, verbose=False), lgb.record_evaluation(evals)],
    )  #= model, trained, train-loss?, test-loss?
    it = booster.best_iteration - 1
    print(f"{t}: train rmse {evals['train']['rmse'][it]:.5f}")  #= train-loss
    print(f"{t}: valid rmse {evals['valid']['rmse'][it]:.5f}")  #= test-loss
    result[t] = np.expm1(booster.predict(test.drop(columns=["id"]), num_iteration=booster.best_iteration)).clip(0)  #= predicted

result.to_csv("submission.csv", index=False)
