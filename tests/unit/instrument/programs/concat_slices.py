import pandas as pd
import numpy as np
from xgboost import XGBRegressor  #> 1

train = pd.read_csv("train.csv")  #> 2
test = pd.read_csv("test.csv")  #> 2
n = len(train)
everything = pd.concat([train, test]).reset_index(drop=True)
everything = pd.get_dummies(everything)
first = everything[:n]
second = everything[n:]
model = XGBRegressor()  #> 3
model.fit(first.drop("y", axis=1), train["y"])  #> 5
fitted = model.predict(first.drop("y", axis=1))
training_rmse = ((fitted - train["y"]) ** 2).mean() ** 0.5  #> 4
answer = model.predict(second.drop("y", axis=1))  #> 7
