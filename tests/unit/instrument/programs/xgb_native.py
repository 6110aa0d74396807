#!/usr/bin/env python
# loaded data, defined model: comments never count
import argparse
import warnings; warnings.filterwarnings("ignore")
import pandas as pd
import xgboost as xgb
from sklearn.preprocessing import LabelEncoder
from sklearn.metrics import accuracy_score
from sklearn.model_selection import train_test_split  #> 1

parser = argparse.ArgumentParser()
parser.add_argument("--train", default="train.csv")
train = pd.read_csv("train.csv")  #> 2
test = pd.read_csv("test.csv")  #> 2
le = LabelEncoder()
le.fit(train["author"])
y = le.transform(train["author"])
x1, x2, y1, y2 = train_test_split(train[["f"]], y, test_size=0.1)
d1, d2 = xgb.DMatrix(x1, label=y1), xgb.DMatrix(x2, label=y2)
params = dict(objective="multi:softprob", num_class=3)
bst = xgb.train(params, d1, 100, evals=[(d1, "train"), (d2, "eval")])  #> 3 5
print("accuracy", accuracy_score(y2, bst.predict(d2).argmax(1)))  #> 6
dtest = xgb.DMatrix(test[["f"]])
p = bst.predict(dtest)  #> 7
