import logging
import pandas as pd
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.metrics import accuracy_score, balanced_accuracy_score  #= packages

log = logging.getLogger("dec21")
log.setLevel(logging.INFO)
log.addHandler(logging.FileHandler("run.log"))
log.addHandler(logging.StreamHandler())

root = "/workdir/tabular-playground-series-dec-2021/prepared/public/{}.csv"
train, test = (pd.read_csv(root.format(n)) for n in ("train", "test"))  #= data
log.info("train %s test %s", train.shape, test.shape)
train = train.drop(columns=["Soil_Type7", "Soil_Type15"])
test = test.drop(columns=["Soil_Type7", "Soil_Type15"])
y = train.Cover_Type
X = train.drop(columns=["Id", "Cover_Type"])

split = StratifiedShuffleSplit(n_splits=1, test_size=0.1, random_state=0)
for a, b in split.split(X, y.where(y != 5, 2)):
    clf = ExtraTreesClassifier(n_estimators=150, n_jobs=-1)  #= model
    clf.fit(X.iloc[a], y.iloc[a])  #= trained
    log.info("train acc %.5f", accuracy_score(y.iloc[a], clf.predict(X.iloc[a])))  #= train-loss
    pb = clf.predict(X.iloc[b])
    log.info("valid acc %.5f balanced %.5f", accuracy_score(y.iloc[b], pb), balanced_accuracy_score(y.iloc[b], pb))  #= test-loss

test["Cover_Type"] = clf.predict(test[X.columns])  #= predicted
test.loc[:, ["Id", "Cover_Type"]].to_csv("submission.csv", index=False)
log.info("written")
