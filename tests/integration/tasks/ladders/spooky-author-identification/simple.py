"""Logistic regression on words: right as it stands, and wrong in many ways after one slip."""

import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

DATA = "/workdir/spooky-author-identification/prepared/public"
train = pd.read_csv(f"{DATA}/train.csv")
test = pd.read_csv(f"{DATA}/test.csv")

X_fit, X_held, y_fit, y_held = train_test_split(
    train["text"], train["author"], test_size=0.2, random_state=0
)
vectorizer = TfidfVectorizer(min_df=2, sublinear_tf=True)
fit_words = vectorizer.fit_transform(X_fit)
held_words = vectorizer.transform(X_held)
test_words = vectorizer.transform(test["text"])

model = LogisticRegression(C=1.0, max_iter=1000)
model.fit(fit_words, y_fit)
print("training loss", log_loss(y_fit, model.predict_proba(fit_words)))
print("validation loss", log_loss(y_held, model.predict_proba(held_words)))

chances = model.predict_proba(test_words)
submission = pd.DataFrame(chances, columns=model.classes_)
submission.insert(0, "id", test["id"])
submission.to_csv("./submission.csv", index=False)
