import pandas as pd
import numpy as np
import lightgbm as lgb
from sklearn.metrics import accuracy_score
from sklearn.model_selection import train_test_split  #= packages

train = pd.read_csv("train.csv")  #= data
test = pd.read_csv("test.csv")  #= data
y = train["Cover_Type"]
train = train.drop(columns=["Id", "Cover_Type"])
ids = test.pop("Id")

X1, X2, y1, y2 = train_test_split(train, y, test_size=0.1, random_state=5)
gbm = lgb.LGBMClassifier(n_estimators=300, num_leaves=63)  #= model
gbm.fit(X1, y1, eval_set=[(X2, y2)])  #= trained, test-loss?
print("acc", accuracy_score(y2, gbm.predict(X2)))  #= test-loss

proba = gbm.predict_proba(test)  #= predicted
sure = proba.max(axis=1) > 0.99
pseudo_X = test[sure]
pseudo_y = gbm.classes_[proba[sure].argmax(axis=1)]
gbm2 = lgb.LGBMClassifier(n_estimators=300, num_leaves=63)  #= model
gbm2.fit(pd.concat([X1, pseudo_X]), np.concatenate([y1, pseudo_y]))  #= trained
print("acc with pseudo labels", accuracy_score(y2, gbm2.predict(X2)))  #= test-loss
final = gbm2.predict(test)  #= predicted
pd.DataFrame({"Id": ids, "Cover_Type": final}).to_csv("submission.csv", index=False)
