"""Train a model and print the training loss."""
from __future__ import annotations

import numpy as np
import pandas as pd
from lightgbm import LGBMRegressor
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import train_test_split  #> 1


def load_data(path):
    return pd.read_csv(path)


def rmse(y_true, y_pred):
    return np.sqrt(mean_squared_error(y_true, y_pred))


def build_model():
    return LGBMRegressor(n_estimators=200)


def prepare(df):
    df = df.copy()
    df["ratio"] = df["a"] / df["b"]
    return df


def main():
    train = prepare(load_data("train.csv"))  #> 2
    test = prepare(load_data("test.csv"))  #> 2
    y = train.pop("target")
    X_train, X_test, y_train, y_test = train_test_split(train, y)
    model = build_model()  #> 3
    model.fit(X_train, y_train)  #> 5
    print("train", rmse(y_train, model.predict(X_train)))  #> 4
    print("valid", rmse(y_test, model.predict(X_test)))  #> 6
    test["target"] = model.predict(test)  #> 7
    test[["id", "target"]].to_csv("submission.csv", index=False)


if __name__ == "__main__":
    main()
