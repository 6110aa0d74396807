import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold  #> 1

train = pd.read_json("/workdir/random-acts-of-pizza/prepared/public/train.json")
test = pd.read_json("/workdir/random-acts-of-pizza/prepared/public/test.json")  #> 2
cols = [c for c in test.columns if c.endswith("_at_request") and test[c].dtype != object]
X, X_test = train[cols], test[cols]
y = train["requester_received_pizza"].astype(int)

skf = StratifiedKFold(n_splits=3, shuffle=True, random_state=0)
oof = np.zeros(len(train))
test_pred = np.zeros(len(test))
for fold, (tr_idx, va_idx) in enumerate(skf.split(X, y)):
    X_tr, X_va = X.iloc[tr_idx], X.iloc[va_idx]
    y_tr, y_va = y.iloc[tr_idx], y.iloc[va_idx]
    clf = LGBMClassifier(n_estimators=60, num_leaves=7, n_jobs=1, random_state=0, verbose=-1)  #> 3
    clf.fit(X_tr, y_tr)  #> 5
    train_loss = log_loss(y_tr, clf.predict_proba(X_tr)[:, 1])  #> 4
    oof[va_idx] = clf.predict_proba(X_va)[:, 1]
    auc = roc_auc_score(y_va, oof[va_idx])  #> 6
    print(f"fold {fold}: train loss {train_loss:.4f}, AUC {auc:.4f}")
    test_pred += clf.predict_proba(X_test)[:, 1] / skf.n_splits  #> 7
print("OOF AUC", roc_auc_score(y, oof))

pd.DataFrame({"request_id": test["request_id"], "requester_received_pizza": test_pred}).to_csv(
    "submission.csv", index=False
)
