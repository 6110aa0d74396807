import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import RidgeClassifier, PassiveAggressiveClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler  #= packages


def main():
    train = pd.read_csv("./train.csv")  #= data
    test = pd.read_csv("./test.csv")  #= data
    X_text, y = train["Comment"].values, train["Insult"].values

    tv = TfidfVectorizer(sublinear_tf=True, strip_accents='unicode', analyzer='word')
    tv.fit(X_text)

    X_train, X_valid, y_train, y_valid = train_test_split(tv.transform(X_text), y, train_size=0.8)
    ridge = RidgeClassifier()  #= model
    ridge.fit(X_train, y_train)  #= trained

    def report(split, features, labels):
        scores = ridge.decision_function(features)
        print("{} AUC = {:.3f}".format(split, roc_auc_score(labels, scores)))

    report("train", X_train, y_train)  #= train-loss
    report("valid", X_valid, y_valid)  #= test-loss

    raw = ridge.decision_function(tv.transform(test["Comment"].values))  #= predicted
    proba = MinMaxScaler().fit_transform(raw.reshape(-1, 1)).ravel()
    out = test[["Date", "Comment"]].copy()
    out.insert(0, "Insult", proba)
    out.to_csv("submission.csv", index=False)


main()
