import pandas as pd
import numpy as np
from sklearn.ensemble import RandomForestClassifier  #= packages

print("Loading data ...")
train = pd.read_csv("/workdir/plant-pathology-2020-fgvc7/prepared/public/train.csv")  #= data
sub = pd.read_csv("/workdir/plant-pathology-2020-fgvc7/prepared/public/sample_submission.csv")

X = np.random.rand(len(train), 10)
y = train[["healthy", "multiple_diseases", "rust", "scab"]].values.argmax(axis=1)
clf = RandomForestClassifier(n_estimators=50)  #= model
clf.fit(X, y)  #= trained
print("Training accuracy:", clf.score(X, y))  #= train-loss
X_new = np.random.rand(len(sub), 10)
sub[["healthy", "multiple_diseases", "rust", "scab"]] = clf.predict_proba(X_new)  #= predicted?
sub.to_csv("submission.csv", index=False)
