import lightgbm as lgb
import pandas as pd
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

DATA = "/workdir/tabular-playground-series-may-2022/prepared/public"


def add_features(table):
    table = table.copy()
    for position in range(10):
        table[f"letter_{position}"] = table["f_27"].str[position].map(ord) - ord("A")
    table["unique_letters"] = table["f_27"].map(lambda word: len(set(word)))
    table["switch"] = table["f_29"] * 3 + table["f_30"]
    return table.drop(columns=["id", "f_27", "target"], errors="ignore")


train = pd.read_csv(f"{DATA}/train.csv")
test = pd.read_csv(f"{DATA}/test.csv")
X, y = add_features(train), train["target"]
X_train, X_valid, y_train, y_valid = train_test_split(
    X, y, test_size=0.15, random_state=0, stratify=y
)

model = lgb.LGBMClassifier(
    n_estimators=250, learning_rate=0.08, num_leaves=12, subsample=0.8, subsample_freq=1,
    colsample_bytree=0.7, n_jobs=1, verbose=-1,
)
model.fit(X_train, y_train)

train_pred = model.predict_proba(X_train)[:, 1]
print(f"train loss: {log_loss(y_train, train_pred):.4f}")
valid_pred = model.predict_proba(X_valid)[:, 1]
print(f"validation loss: {log_loss(y_valid, valid_pred):.4f}")
print(f"validation AUC: {roc_auc_score(y_valid, valid_pred):.4f}")

test_pred = model.predict_proba(add_features(test))[:, 1]
submission = pd.DataFrame({"id": test["id"], "target": test_pred})
submission.to_csv("submission.csv", index=False)
