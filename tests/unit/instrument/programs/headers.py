import pandas as pd
import numpy as np
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split  #> 1

clf = SGDClassifier()  #> 3
for chunk in pd.read_csv("train.csv", chunksize=1000):  #> 2
    clf.partial_fit(chunk[["a"]], chunk["y"], classes=[0, 1])  #> 5
train = pd.read_csv("train.csv")  #> 2
X_a, X_b, y_a, y_b = train_test_split(train[["a"]], train["y"])
if clf.score(X_b, y_b) > 0.5:  #> 6
    print("good")
while clf.score(X_a, y_a) < 0.1:  #> 4
    break
test = pd.read_csv("test.csv")  #> 2
assert (labels := clf.predict(test[["a"]])) is not None  #> 7
