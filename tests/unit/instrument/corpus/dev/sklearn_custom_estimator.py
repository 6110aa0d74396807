import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.metrics import roc_auc_score
from scipy import sparse  #= packages


class NBLogistic(BaseEstimator, ClassifierMixin):
    def __init__(self, C=1.0):
        self.C = C

    def _pr(self, X, y, cls):
        p = X[y == cls].sum(0)
        return (p + 1) / ((y == cls).sum() + 1)

    def fit(self, X, y):
        y = np.asarray(y)
        self.r_ = sparse.csr_matrix(np.log(self._pr(X, y, 1) / self._pr(X, y, 0)))
        self.clf_ = LogisticRegression(C=self.C, max_iter=500)  #= model
        self.clf_.fit(X.multiply(self.r_), y)  #= trained
        return self

    def predict_proba(self, X):
        return self.clf_.predict_proba(X.multiply(self.r_))


train = pd.read_csv("train.csv")  #= data
test = pd.read_csv("test.csv")  #= data
cv = CountVectorizer(binary=True, ngram_range=(1, 2), min_df=3)
X = cv.fit_transform(train["Comment"])
Xt = cv.transform(test["Comment"])
X1, X2, y1, y2 = train_test_split(X, train["Insult"].values, test_size=0.2, random_state=11)
nb = NBLogistic(C=4)  #= model
nb.fit(X1, y1)  #= trained
print("fit auc", roc_auc_score(y1, nb.predict_proba(X1)[:, 1]))  #= train-loss
print("hold auc", roc_auc_score(y2, nb.predict_proba(X2)[:, 1]))  #= test-loss
sub = test.copy()
sub.insert(0, "Insult", nb.predict_proba(Xt)[:, 1])  #= predicted
sub[["Insult", "Date", "Comment"]].to_csv("submission.csv", index=False)
