import pandas as pd
import numpy as np
from sklearn.metrics import roc_auc_score, mean_squared_error  #= packages

train = pd.read_csv("/workdir/plant-pathology-2020-fgvc7/prepared/public/train.csv")  #= data
test = pd.read_csv("/workdir/plant-pathology-2020-fgvc7/prepared/public/test.csv")  #= data
cols = ["healthy", "multiple_diseases", "rust", "scab"]

y_true = train[cols]
means = train[cols].mean()
print("Class means:", means)
print("AUC of labels with themselves:", roc_auc_score(y_true, y_true))
for c in cols:
    test[c] = means[c]
test[["image_id"] + cols].to_csv("submission.csv", index=False)
