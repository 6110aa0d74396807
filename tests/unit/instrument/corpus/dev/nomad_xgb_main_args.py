import sys
import numpy as np
import pandas as pd
import xgboost as xgb
from sklearn.model_selection import train_test_split
from sklearn.metrics import mean_squared_error  #= packages


def rmse(a, b):
    return float(np.sqrt(mean_squared_error(a, b)))


def train_one(X, y, seed=0):
    """Train one regressor and return it with its two errors."""
    Xa, Xb, ya, yb = train_test_split(X, y, test_size=0.2, random_state=seed)
    reg = xgb.XGBRegressor(n_estimators=500, max_depth=5, learning_rate=0.04, subsample=0.8)  #= model
    reg.fit(Xa, ya, eval_set=[(Xb, yb)], verbose=False)  #= trained, test-loss?
    return reg, rmse(ya, reg.predict(Xa)), rmse(yb, reg.predict(Xb))  #= train-loss, test-loss


def main(argv):
    root = argv[1] if len(argv) > 1 else "/workdir/nomad2018-predict-transparent-conductors/prepared/public"
    train = pd.read_csv(root + "/train.csv")  #= data
    test = pd.read_csv(root + "/test.csv")  #= data
    for df in (train, test):
        df["volume"] = df.lattice_vector_1_ang * df.lattice_vector_2_ang * df.lattice_vector_3_ang
        df["spacegroup"] = df.spacegroup.astype("category").cat.codes
    features = [c for c in test.columns if c != "id"]
    sub = test[["id"]].copy()
    for name in ("formation_energy_ev_natom", "bandgap_energy_ev"):
        model, train_err, valid_err = train_one(train[features], np.log1p(train[name]))  #= model, trained, train-loss, test-loss
        print("%-28s train %.5f valid %.5f" % (name, train_err, valid_err))  #= train-loss, test-loss
        sub[name] = np.expm1(model.predict(test[features]))  #= predicted
    sub.to_csv("submission.csv", index=False)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))  #= data?, model?, trained?, train-loss?, test-loss?, predicted?
