"""Logistic regression on the lengths of the two answers."""

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

DATA = "/workdir/lmsys-chatbot-arena/prepared/public"
OUTCOMES = ["winner_model_a", "winner_model_b", "winner_tie"]
train = pd.read_csv(f"{DATA}/train.csv")
test = pd.read_csv(f"{DATA}/test.csv")


def describe(table):
    first, second = table["response_a"].str.len(), table["response_b"].str.len()
    return np.column_stack(
        [np.log(first), np.log(second), np.log(first) - np.log(second), (first - second).abs()]
    )


y = train[OUTCOMES].to_numpy().argmax(axis=1)
X_fit, X_held, y_fit, y_held = train_test_split(describe(train), y, test_size=0.2, random_state=0)
model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
model.fit(X_fit, y_fit)
print("training loss", log_loss(y_fit, model.predict_proba(X_fit)))
print("validation loss", log_loss(y_held, model.predict_proba(X_held)))

submission = test[["id"]].copy()
submission[OUTCOMES] = model.predict_proba(describe(test))
submission.to_csv("submission.csv", index=False)
