import numpy as np
import pandas as pd
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler  #> 1

PATH = "/workdir/nomad2018-predict-transparent-conductors/prepared/public/{}.csv"
TARGETS = ["formation_energy_ev_natom", "bandgap_energy_ev"]


def read(name):
    df = pd.read_csv(PATH.format(name))
    return pd.concat([df, pd.get_dummies(df["spacegroup"], prefix="sg", dtype=float)], axis=1)


def get_model():
    return make_pipeline(PolynomialFeatures(2), StandardScaler(), Ridge(alpha=5.0))


def rmse(a, b):
    return np.sqrt(mean_squared_error(a, b))


def run():
    train = read("train")
    test = read("test")  #> 2
    features = [c for c in train.columns if c not in TARGETS + ["id", "spacegroup"]]
    test = test.reindex(columns=["id"] + features, fill_value=0.0)
    y = np.log1p(train[TARGETS].values)
    X_tr, X_va, y_tr, y_va = train_test_split(
        train[features].values, y, test_size=0.15, random_state=3
    )
    model = get_model()  #> 3
    model.fit(X_tr, y_tr)  #> 5
    print("train rmsle", rmse(y_tr, model.predict(X_tr)))  #> 4
    print("valid rmsle", rmse(y_va, model.predict(X_va)))  #> 6
    pred = np.expm1(model.predict(test[features].values)).clip(min=0)  #> 7
    return pd.DataFrame({"id": test["id"], TARGETS[0]: pred[:, 0], TARGETS[1]: pred[:, 1]})


if __name__ == "__main__":
    run().to_csv("submission.csv", index=False)
