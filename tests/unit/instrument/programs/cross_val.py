import numpy as np
import polars as pl
from sklearn.model_selection import cross_val_score, cross_val_predict
from sklearn.svm import SVC  #> 1

train = pl.read_csv("train.csv")  #> 2
competition = pl.read_csv("test.csv")  #> 2
scores = cross_val_score(SVC(), train, train["y"], cv=5)  #> 3 5 6
print(np.mean(scores))
clf = SVC(probability=True).fit(train, train["y"])  #> 3 5
p = clf.predict_proba(competition)  #> 7
