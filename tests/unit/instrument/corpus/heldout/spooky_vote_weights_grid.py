import itertools
import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import MultinomialNB
from sklearn.model_selection import train_test_split
from sklearn.metrics import log_loss  #= packages

base = "/workdir/spooky-author-identification/prepared/public"
train = pd.read_csv(f"{base}/train.csv")  #= data
test = pd.read_csv(f"{base}/test.csv")  #= data
y = train["author"].map({"EAP": 0, "HPL": 1, "MWS": 2}).values
idx_train, idx_valid = train_test_split(np.arange(len(train)), test_size=0.15, random_state=21, stratify=y)

tv = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2)
X = tv.fit_transform(train["text"])
X_test = tv.transform(test["text"])

members = [  #= model
    ("lr", LogisticRegression(C=8, max_iter=400)),
    ("nb", MultinomialNB(alpha=0.02)),
    ("sgd", SGDClassifier(loss="modified_huber", alpha=1e-4)),
]
valid_probs, test_probs = {}, {}
for name, m in members:
    m.fit(X[idx_train], y[idx_train])  #= trained
    print(name, "train", log_loss(y[idx_train], m.predict_proba(X[idx_train])))  #= train-loss
    valid_probs[name] = m.predict_proba(X[idx_valid])
    test_probs[name] = m.predict_proba(X_test)  #= predicted
    print(name, "valid", log_loss(y[idx_valid], valid_probs[name]))  #= test-loss

best = (9.0, None)
for w in itertools.product(np.arange(0, 1.01, 0.1), repeat=2):
    if sum(w) > 1:
        continue
    ws = (*w, 1 - sum(w))
    mix = sum(a * valid_probs[n] for a, (n, _) in zip(ws, members))
    best = min(best, (log_loss(y[idx_valid], mix), ws))  #= test-loss
print("best blend", best)  #= test-loss
final = sum(a * test_probs[n] for a, (n, _) in zip(best[1], members))  #= predicted
pd.DataFrame(final, columns=["EAP", "HPL", "MWS"]).assign(id=test["id"])[["id", "EAP", "HPL", "MWS"]].to_csv("submission.csv", index=False)
