import logging

import numpy as np
import pandas as pd
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import train_test_split  #> 1

logging.basicConfig(level=logging.INFO)
log = logging.getLogger("nomad")
ROOT = "/workdir/nomad2018-predict-transparent-conductors/prepared/public"
TARGETS = ["formation_energy_ev_natom", "bandgap_energy_ev"]


def main():
    try:
        train_df = pd.read_csv(f"{ROOT}/train.csv")
        test_df = pd.read_csv(f"{ROOT}/test.csv")  #> 2
    except OSError as error:
        raise SystemExit(f"no data: {error}") from error
    X = train_df.drop(columns=["id"] + TARGETS)
    y = np.log1p(train_df[TARGETS])
    X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, random_state=5)
    try:
        reg = ExtraTreesRegressor(n_estimators=30, random_state=5)  #> 3
        reg.fit(X_train, y_train)  #> 5
        train_rmse = mean_squared_error(y_train, reg.predict(X_train)) ** 0.5  #> 4
        val_rmse = mean_squared_error(y_val, reg.predict(X_val)) ** 0.5  #> 6
        log.info("train %.4f val %.4f", train_rmse, val_rmse)
    except Exception:
        log.exception("training failed")
        raise
    preds = np.expm1(reg.predict(test_df[X.columns]))  #> 7
    submission = test_df[["id"]].copy()
    submission[TARGETS] = np.maximum(preds, 0)
    submission.to_csv("submission.csv", index=False)


main()
