"""Logistic regression on the words of a request."""

import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

DATA = "/workdir/random-acts-of-pizza/prepared/public"
train = pd.read_json(f"{DATA}/train.json")
test = pd.read_json(f"{DATA}/test.json")
target = train["requester_received_pizza"].astype(int)

vectorizer = TfidfVectorizer(ngram_range=(1, 2), min_df=3, sublinear_tf=True)
words = vectorizer.fit_transform(train["request_text_edit_aware"])
X_fit, X_held, y_fit, y_held = train_test_split(words, target, test_size=0.2, random_state=0)

model = LogisticRegression(C=1.0, max_iter=1000)
model.fit(X_fit, y_fit)
print("training loss", log_loss(y_fit, model.predict_proba(X_fit)[:, 1]))
print("validation AUC", roc_auc_score(y_held, model.predict_proba(X_held)[:, 1]))

test_words = vectorizer.transform(test["request_text_edit_aware"])
submission = test[["request_id"]].copy()
submission["requester_received_pizza"] = model.predict_proba(test_words)[:, 1]
submission.to_csv("submission.csv", index=False)
