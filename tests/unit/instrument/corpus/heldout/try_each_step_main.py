import traceback
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.feature_extraction.text import TfidfVectorizer  #= packages


def step(name):
    print(f"=== {name} ===")


def main():
    step("load")
    try:
        train = pd.read_csv("/workdir/detecting-insults-in-social-commentary/prepared/public/train.csv")  #= data
        test = pd.read_csv("/workdir/detecting-insults-in-social-commentary/prepared/public/test.csv")  #= data
    except FileNotFoundError:
        traceback.print_exc()
        return

    step("features")
    tfidf = TfidfVectorizer(max_features=4000)
    X = tfidf.fit_transform(train.Comment)
    X_test = tfidf.transform(test.Comment)
    X_tr, X_val, y_tr, y_val = train_test_split(X, train.Insult, test_size=0.2, random_state=42)

    step("train")
    model = None
    try:
        model = RandomForestClassifier(n_estimators=200)  #= model
        model.fit(X_tr, y_tr)  #= trained
    except Exception as e:
        print("training failed:", e)

    step("evaluate")
    if model is not None:
        try:
            print("train auc:", roc_auc_score(y_tr, model.predict_proba(X_tr)[:, 1]))  #= train-loss
            print("val auc:", roc_auc_score(y_val, model.predict_proba(X_val)[:, 1]))  #= test-loss
        except ValueError as e:
            print(e)

    step("submit")
    preds = model.predict_proba(X_test)[:, 1] if model is not None else [0.5] * len(test)  #= predicted?
    test["Insult"] = preds
    test[["Insult", "Date", "Comment"]].to_csv("submission.csv", index=False)


if __name__ == "__main__":
    main()
