import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

data = "/workdir/tabular-playground-series-may-2022/prepared/public"
train = pd.read_csv(f"{data}/train.csv")
test = pd.read_csv(f"{data}/test.csv")

features = [name for name in test.columns if name not in ("id", "f_27")]
model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
model.fit(train[features], train["target"])
print("train loss:", log_loss(train["target"], model.predict_proba(train[features])))

test["target"] = model.predict_proba(test[features])[:, 1]
test[["id", "target"]].to_csv("submission.csv", index=False)
