import os
import sys
try:  #> 1
    import lightgbm as lgb
except ImportError:
    lgb = None
import_error = "from sklearn import loaded data"


def run():
    import pandas as pd
    from sklearn.ensemble import GradientBoostingRegressor

    try:
        data = pd.read_csv("train.csv")  #> 2
    except FileNotFoundError:
        data = pd.read_csv("/input/train.csv")  #> 2
    model = GradientBoostingRegressor()  #> 3
    try:
        model.fit(data[["a"]], data["y"])  #> 5
    except ValueError as error:
        print("training failed", error)
        raise
    return model.predict(pd.read_csv("test.csv"))


result = run()  #> 2 7
