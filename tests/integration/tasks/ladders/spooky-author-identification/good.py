"""Logistic regression on characters, checked on held-out sentences and then fitted to all."""

import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

DATA = "/workdir/spooky-author-identification/prepared/public"
train = pd.read_csv(f"{DATA}/train.csv")
test = pd.read_csv(f"{DATA}/test.csv")

vectorizer = TfidfVectorizer(analyzer="char", ngram_range=(1, 4), min_df=4, sublinear_tf=True)
characters = vectorizer.fit_transform(train["text"])
test_characters = vectorizer.transform(test["text"])
X_fit, X_held, y_fit, y_held = train_test_split(
    characters, train["author"], test_size=0.2, random_state=0
)

model = LogisticRegression(C=3.0, max_iter=200, tol=1e-3)
model.fit(X_fit, y_fit)
print("training loss", log_loss(y_fit, model.predict_proba(X_fit)))
print("validation loss", log_loss(y_held, model.predict_proba(X_held)))

model.fit(characters, train["author"])
submission = pd.DataFrame(model.predict_proba(test_characters), columns=model.classes_)
submission.insert(0, "id", test["id"])
submission.to_csv("submission.csv", index=False)
