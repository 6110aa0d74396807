import numpy as np
import optuna
import pandas as pd
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.model_selection import cross_val_score  #= packages

train = pd.read_csv("train.csv")  #= data
test = pd.read_csv("test.csv")  #= data
targets = ["formation_energy_ev_natom", "bandgap_energy_ev"]
X = train.drop(columns=["id", *targets])
Y = np.log1p(train[targets])


def objective(trial):
    model = ExtraTreesRegressor(
        n_estimators=trial.suggest_int("n_estimators", 100, 500),
        max_depth=trial.suggest_int("max_depth", 4, 20),
    )  #= model
    score = cross_val_score(model, X, Y, scoring="neg_root_mean_squared_error", cv=5).mean()  #= test-loss, trained?
    return -score


study = optuna.create_study(direction="minimize")
study.optimize(objective, n_trials=30)  #= model, test-loss, trained?
print("best rmsle", study.best_value)  #= test-loss

best = ExtraTreesRegressor(**study.best_params)  #= model
best.fit(X, Y)  #= trained
pred = np.expm1(best.predict(test.drop(columns=["id"])))  #= predicted
sub = pd.DataFrame(pred, columns=targets)
sub.insert(0, "id", test["id"])
sub.to_csv("submission.csv", index=False)
