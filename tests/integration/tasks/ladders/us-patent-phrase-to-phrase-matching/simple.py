"""Ridge regression on how alike the two phrases are spelled."""

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import train_test_split

DATA = "/workdir/us-patent-phrase-to-phrase-matching/prepared/public"
train = pd.read_csv(f"{DATA}/train.csv")
test = pd.read_csv(f"{DATA}/test.csv")

vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 3))
vectorizer.fit(pd.concat([train["anchor"], train["target"]]))


def describe(pairs):
    anchors, targets = vectorizer.transform(pairs["anchor"]), vectorizer.transform(pairs["target"])
    cosine = np.asarray(anchors.multiply(targets).sum(axis=1)).ravel()
    return np.column_stack([cosine, pairs["target"].str.len()])


X_fit, X_held, y_fit, y_held = train_test_split(
    describe(train), train["score"], test_size=0.2, random_state=0
)
model = Ridge(alpha=1.0)
model.fit(X_fit, y_fit)
print("training loss", mean_squared_error(y_fit, model.predict(X_fit)))
print("validation loss", mean_squared_error(y_held, model.predict(X_held)))
print("validation correlation", np.corrcoef(y_held, model.predict(X_held))[0, 1])

submission = test[["id"]].copy()
submission["score"] = model.predict(describe(test))
submission.to_csv("submission.csv", index=False)
