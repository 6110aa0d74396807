import pandas as pd
import numpy as np
from catboost import CatBoostClassifier, Pool
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score  #= packages

train = pd.read_csv("/workdir/tabular-playground-series-dec-2021/prepared/public/train.csv", nrows=500000)  #= data
test = pd.read_csv("/workdir/tabular-playground-series-dec-2021/prepared/public/test.csv")  #= data

train = train[train.Cover_Type != 5]
X = train.drop(columns=["Id", "Cover_Type"])
y = train["Cover_Type"]
Xtr, Xval, ytr, yval = train_test_split(X, y, test_size=0.1, random_state=0, stratify=y)

train_pool = Pool(Xtr, ytr)
valid_pool = Pool(Xval, yval)

clf = CatBoostClassifier(iterations=1000, learning_rate=0.1, depth=8, loss_function="MultiClass", task_type="CPU", verbose=100)  #= model
clf.fit(train_pool, eval_set=valid_pool, use_best_model=True)  #= trained, test-loss?, train-loss?

print("Train acc:", accuracy_score(ytr, clf.predict(Xtr).ravel()))  #= train-loss
print("Valid acc:", accuracy_score(yval, clf.predict(Xval).ravel()))  #= test-loss
print(clf.get_best_score())  #= test-loss

pred = clf.predict(test.drop(columns=["Id"])).ravel()  #= predicted
pd.DataFrame({"Id": test.Id, "Cover_Type": pred}).to_csv("submission.csv", index=False)
