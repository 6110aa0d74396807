import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.pipeline import Pipeline  #= packages

def load():
    base = "/workdir/spooky-author-identification/prepared/public"
    return pd.read_csv(f"{base}/train.csv"), pd.read_csv(f"{base}/test.csv")

def build():
    return Pipeline([
        ("tfidf", TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2)),
        ("lr", LogisticRegression(C=10, max_iter=1000)),
    ])

train, test = load()  #= data
clf = build()  #= model
result = cross_validate(clf, train["text"], train["author"], scoring="neg_log_loss", return_train_score=True, cv=5)  #= test-loss, train-loss, trained?
print("train:", -result["train_score"].mean())  #= train-loss
print("test:", -result["test_score"].mean())  #= test-loss

clf.fit(train["text"], train["author"])  #= trained
proba = clf.predict_proba(test["text"])  #= predicted
out = pd.DataFrame(proba, columns=clf.classes_)
out.insert(0, "id", test["id"])
out.to_csv("submission.csv", index=False)
