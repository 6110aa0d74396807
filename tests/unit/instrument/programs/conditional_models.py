import pandas as pd
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold  #> 1

USE_FOREST = True
train = pd.read_csv("train.csv")  #> 2
test = pd.read_csv("test.csv")  #> 2
if USE_FOREST:
    base = RandomForestClassifier()  #> 3
else:
    base = LogisticRegression()  #> 3
X, y = train.drop(columns=["y"]), train["y"]


def run_fold(model, X_train, y_train, X_valid, y_valid):
    fitted = clone(model).fit(X_train, y_train)  #> 5
    return fitted, log_loss(y_valid, fitted.predict_proba(X_valid))


total = 0.0
for train_index, test_index in StratifiedKFold(3).split(X, y):
    X_tr, X_te = X.iloc[train_index], X.iloc[test_index]
    y_tr, y_te = y.iloc[train_index], y.iloc[test_index]
    fitted, loss = run_fold(base, X_tr, y_tr, X_te, y_te)  #> 6
    total += loss
base.fit(X, y)  #> 5
submission = pd.read_csv("sample_submission.csv")
submission.iloc[:, 1:] = base.predict_proba(test)  #> 7
