import re
import numpy as np
import pandas as pd
from gensim.models import Word2Vec
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.metrics import roc_auc_score  #= packages

train = pd.read_csv("train.csv")  #= data
test = pd.read_csv("test.csv")  #= data

def tok(s):
    return re.findall(r"[a-z']+", s.lower())

sentences = [tok(c) for c in train["Comment"]]
w2v = Word2Vec(sentences, vector_size=100, min_count=2, epochs=10)  #= model?

def doc_vector(words):
    vecs = [w2v.wv[w] for w in words if w in w2v.wv]
    return np.mean(vecs, axis=0) if vecs else np.zeros(100)

X = np.vstack([doc_vector(s) for s in sentences])
X_test = np.vstack([doc_vector(tok(c)) for c in test["Comment"]])
y = train["Insult"].to_numpy()
Xtr, Xte, ytr, yte = train_test_split(X, y, test_size=0.2, random_state=0)
forest = RandomForestClassifier(n_estimators=100)  #= model
forest = forest.fit(Xtr, ytr)  #= trained
result = forest.predict_proba(Xte)[:, 1]
print("AUC", roc_auc_score(yte, result))  #= test-loss
test["Insult"] = forest.predict_proba(X_test)[:, 1]  #= predicted
test[["Insult", "Date", "Comment"]].to_csv("submission.csv", index=False)
