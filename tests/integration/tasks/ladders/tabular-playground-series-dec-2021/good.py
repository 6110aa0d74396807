import lightgbm as lgb
import numpy as np
import pandas as pd
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split

DATA = "/workdir/tabular-playground-series-dec-2021/prepared/public"


def add_features(table):
    table = table.drop(columns=["Id", "Cover_Type"], errors="ignore").copy()
    direction = np.radians(table["Aspect"])
    table["north"] = table["Slope"] * np.cos(direction)
    table["east"] = table["Slope"] * np.sin(direction)
    return table


train = pd.read_csv(f"{DATA}/train.csv")
test = pd.read_csv(f"{DATA}/test.csv")

# a class with a single row can neither be learned nor be stratified
counts = train["Cover_Type"].value_counts()
train = train[train["Cover_Type"].map(counts) > 10]
X, y = add_features(train), train["Cover_Type"]
X_train, X_valid, y_train, y_valid = train_test_split(
    X, y, test_size=0.1, random_state=0, stratify=y
)

model = lgb.LGBMClassifier(
    n_estimators=50, learning_rate=0.2, num_leaves=12, colsample_bytree=0.6, n_jobs=1, verbose=-1
)
model.fit(X_train, y_train)

train_loss = log_loss(y_train, model.predict_proba(X_train), labels=model.classes_)
print(f"train loss: {train_loss:.4f}")
valid_loss = log_loss(y_valid, model.predict_proba(X_valid), labels=model.classes_)
valid_accuracy = accuracy_score(y_valid, model.predict(X_valid))
print(f"validation loss: {valid_loss:.4f}, validation accuracy: {valid_accuracy:.4f}")

test_pred = model.predict(add_features(test))
submission = pd.DataFrame({"Id": test["Id"], "Cover_Type": test_pred})
submission.to_csv("submission.csv", index=False)
