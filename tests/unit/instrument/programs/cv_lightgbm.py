import numpy as np
import pandas as pd
import lightgbm as lgb
from sklearn.model_selection import StratifiedKFold
from sklearn.metrics import log_loss  #> 1

TRAIN_PATH = "../input/train.csv"
TEST_PATH = "../input/test.csv"
df = pd.read_csv(TRAIN_PATH)  #> 2
df_sub = pd.read_csv(TEST_PATH)  #> 2
features = [c for c in df.columns if c not in ("id", "target")]
X, y = df[features], df["target"]
oof = np.zeros(len(df))
test_pred = np.zeros(len(df_sub))
folds = StratifiedKFold(n_splits=5, shuffle=True, random_state=1)
for fold, (trn_idx, val_idx) in enumerate(folds.split(X, y)):
    X_trn, y_trn = X.iloc[trn_idx], y.iloc[trn_idx]
    X_val, y_val = X.iloc[val_idx], y.iloc[val_idx]
    clf = lgb.LGBMClassifier(n_estimators=1000)  #> 3
    clf.fit(X_trn, y_trn, eval_set=[(X_val, y_val)], callbacks=[lgb.early_stopping(50)])  #> 5
    oof[val_idx] = clf.predict_proba(X_val)[:, 1]
    test_pred += clf.predict_proba(df_sub[features])[:, 1] / 5  #> 7
    print(fold, log_loss(y_val, oof[val_idx]))  #> 6
print("overall", log_loss(y, oof))  #> 6
df_sub["target"] = test_pred
df_sub[["id", "target"]].to_csv("submission.csv", index=False)
