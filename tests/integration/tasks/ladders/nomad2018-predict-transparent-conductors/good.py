"""Boosted trees on composition by space group, averaged over folds."""

import lightgbm as lgb
import numpy as np
import pandas as pd
from sklearn.metrics import root_mean_squared_error
from sklearn.model_selection import KFold

DATA = "/workdir/nomad2018-predict-transparent-conductors/prepared/public"
ENERGIES = ["formation_energy_ev_natom", "bandgap_energy_ev"]
train = pd.read_csv(f"{DATA}/train.csv")
test = pd.read_csv(f"{DATA}/test.csv")


def describe(materials: pd.DataFrame) -> pd.DataFrame:
    """Return the composition with its products, and one column per space group."""
    features = materials.drop(columns=["id", *ENERGIES], errors="ignore")
    for first, second in (("al", "ga"), ("al", "in"), ("ga", "in")):
        product = materials[f"percent_atom_{first}"] * materials[f"percent_atom_{second}"]
        features[f"{first}_{second}"] = product
    for group in (12, 33, 167, 194, 206, 227):
        features[f"group_{group}"] = (materials["spacegroup"] == group).astype(int)
    return features


X, X_test = describe(train), describe(test)
submission = test[["id"]].copy()
for energy in ENERGIES:
    y = np.log1p(train[energy])
    held, prediction = np.zeros(len(X)), np.zeros(len(X_test))
    for inner, outer in KFold(4, shuffle=True, random_state=0).split(X):
        model = lgb.LGBMRegressor(
            n_estimators=250,
            learning_rate=0.07,
            num_leaves=10,
            min_child_samples=8,
            subsample=0.8,
            subsample_freq=1,
            colsample_bytree=0.7,
            n_jobs=1,
            verbose=-1,
        )
        model.fit(X.iloc[inner], y.iloc[inner])
        held[outer] = model.predict(X.iloc[outer])
        prediction += model.predict(X_test) / 4
        loss = root_mean_squared_error(y.iloc[inner], model.predict(X.iloc[inner]))
        print(f"{energy}: training loss {loss:.4f}")
    print(f"{energy}: validation loss {root_mean_squared_error(y, held):.4f}")
    submission[energy] = np.expm1(prediction).clip(0)
submission.to_csv("submission.csv", index=False)
