"""Logistic regression on the shape of a leaf."""

import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

DATA = "/workdir/leaf-classification/prepared/public"
train = pd.read_csv(f"{DATA}/train.csv")
test = pd.read_csv(f"{DATA}/test.csv")
shape = [f"shape{n}" for n in range(1, 65)]

X_fit, X_held, y_fit, y_held = train_test_split(
    train[shape], train["species"], test_size=0.15, random_state=0, stratify=train["species"]
)
model = make_pipeline(StandardScaler(), LogisticRegression(C=0.2, max_iter=500))
model.fit(X_fit, y_fit)
print("training loss", log_loss(y_fit, model.predict_proba(X_fit), labels=model.classes_))
print("validation accuracy", accuracy_score(y_held, model.predict(X_held)))

submission = pd.DataFrame(model.predict_proba(test[shape]), columns=model.classes_)
submission.insert(0, "id", test["id"])
submission.to_csv("submission.csv", index=False)
