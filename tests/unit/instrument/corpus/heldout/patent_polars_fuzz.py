import polars as pl
import numpy as np
from rapidfuzz import fuzz
from xgboost import XGBRegressor
from sklearn.model_selection import GroupKFold
from sklearn.metrics import mean_squared_error  #= packages

BASE = "/workdir/us-patent-phrase-to-phrase-matching/prepared/public"
train = pl.read_csv(f"{BASE}/train.csv")  #= data
test = pl.read_csv(f"{BASE}/test.csv")  #= data


def feats(df):
    rows = []
    for a, t, c in zip(df["anchor"], df["target"], df["context"]):
        rows.append([fuzz.ratio(a, t), fuzz.token_set_ratio(a, t), fuzz.partial_ratio(a, t), len(a), len(t), ord(c[0])])
    return np.array(rows, dtype=np.float32)


X, y = feats(train), train["score"].to_numpy()
X_test = feats(test)
groups = train["anchor"].to_numpy()
oof = np.zeros_like(y)
pred = np.zeros(len(X_test))
gkf = GroupKFold(n_splits=5)
for fold, (itr, iva) in enumerate(gkf.split(X, y, groups)):
    model = XGBRegressor(n_estimators=600, learning_rate=0.05, max_depth=6, early_stopping_rounds=50)  #= model
    model.fit(X[itr], y[itr], eval_set=[(X[itr], y[itr]), (X[iva], y[iva])], verbose=False)  #= trained, train-loss?, test-loss?
    res = model.evals_result()
    print(f"fold {fold} train rmse {res['validation_0']['rmse'][-1]:.4f} valid rmse {res['validation_1']['rmse'][-1]:.4f}")  #= train-loss, test-loss
    oof[iva] = model.predict(X[iva])
    pred += model.predict(X_test) / gkf.n_splits  #= predicted
print("oof corr", np.corrcoef(oof, y)[0, 1], "oof mse", mean_squared_error(y, oof))  #= test-loss
pl.DataFrame({"id": test["id"], "score": pred}).write_csv("submission.csv")
