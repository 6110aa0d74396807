import pandas as pd
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.metrics import cohen_kappa_score
from sklearn.model_selection import train_test_split  #> 1


def train_model(model, X, y):
    model.fit(X, y)  #> 5
    return model


def evaluate(model, X, y, name):
    predictions = model.predict(X)
    kappa = cohen_kappa_score(y, predictions, weights="quadratic")
    print(name, kappa)
    return kappa


train, test = pd.read_csv("train.csv"), pd.read_csv("test.csv")  #> 2
X_train, X_valid, y_train, y_valid = train_test_split(train[["a"]], train["score"])
model = train_model(ExtraTreesClassifier(), X_train, y_train)  #> 3
evaluate(model, X_train, y_train, "train")  #> 4
evaluate(model, X_valid, y_valid, "valid")  #> 6
test["score"] = model.predict(test[["a"]])  #> 7
