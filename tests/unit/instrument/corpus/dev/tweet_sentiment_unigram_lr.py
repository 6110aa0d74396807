import pandas as pd
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score  #= packages

train = pd.read_csv("/workdir/tweet-sentiment-extraction/prepared/public/train.csv")  #= data
test = pd.read_csv("/workdir/tweet-sentiment-extraction/prepared/public/test.csv")  #= data
train = train.dropna(subset=["text", "selected_text"])
test["text"] = test["text"].fillna("")

X_train, X_val = train_test_split(train, test_size=0.1, random_state=42)
cv = CountVectorizer(max_features=8000)
Xtr = cv.fit_transform(X_train["text"])
Xva = cv.transform(X_val["text"])

# a classifier of the sentiment gives a weight to every word
clf = LogisticRegression(max_iter=300)  #= model
clf.fit(Xtr, X_train["sentiment"])  #= trained
print("Train accuracy:", accuracy_score(X_train["sentiment"], clf.predict(Xtr)))  #= train-loss
print("Val accuracy:", accuracy_score(X_val["sentiment"], clf.predict(Xva)))  #= test-loss

word_weight = {s: dict(zip(cv.get_feature_names_out(), w)) for s, w in zip(clf.classes_, clf.coef_)}

def best_span(text, sentiment):
    if sentiment == "neutral":
        return text
    words = text.split()
    w = np.array([word_weight[sentiment].get(x.lower().strip("!.,?"), 0) for x in words])
    if len(w) == 0 or w.max() <= 0:
        return text
    lo = hi = int(w.argmax())
    while lo > 0 and w[lo - 1] > 0:
        lo -= 1
    while hi + 1 < len(w) and w[hi + 1] > 0:
        hi += 1
    return " ".join(words[lo:hi + 1])

def jaccard(a, b):
    a = set(a.lower().split()); b = set(b.lower().split())
    return len(a & b) / len(a | b) if a | b else 0

val_pred = [best_span(t, s) for t, s in zip(X_val["text"], X_val["sentiment"])]
print("Val jaccard:", np.mean([jaccard(p, t) for p, t in zip(val_pred, X_val["selected_text"])]))  #= test-loss
test["selected_text"] = [best_span(t, s) for t, s in zip(test["text"], test["sentiment"])]  #= predicted
test[["textID", "selected_text"]].to_csv("submission.csv", index=False)
