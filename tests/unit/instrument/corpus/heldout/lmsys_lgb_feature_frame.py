import pandas as pd
import numpy as np
import lightgbm as lgb
from sklearn.model_selection import StratifiedKFold
from sklearn.metrics import log_loss, accuracy_score  #= packages

class Config:
    train_file = "/workdir/lmsys-chatbot-arena/prepared/public/train.csv"
    test_file = "/workdir/lmsys-chatbot-arena/prepared/public/test.csv"
    n_folds = 5
    seed = 42
    params = {"objective": "multiclass", "num_class": 3, "learning_rate": 0.05, "n_estimators": 400}

def text_stats(s, prefix):
    out = {}
    out[f"{prefix}_len"] = len(s)
    out[f"{prefix}_words"] = s.count(" ")
    out[f"{prefix}_lines"] = s.count("\\n")
    out[f"{prefix}_code"] = s.count("```")
    out[f"{prefix}_q"] = s.count("?")
    return out

def build_features(df):
    rows = []
    for _, r in df.iterrows():
        row = {}
        for col in ("prompt", "response_a", "response_b"):
            row.update(text_stats(r[col], col))
        rows.append(row)
    feats = pd.DataFrame(rows)
    for k in ("len", "words", "lines", "code", "q"):
        feats[f"diff_{k}"] = feats[f"response_a_{k}"] - feats[f"response_b_{k}"]
    return feats

def train_cv(X, y, X_test):
    oof = np.zeros((len(X), 3))
    preds = np.zeros((len(X_test), 3))
    train_scores = []
    kf = StratifiedKFold(Config.n_folds, shuffle=True, random_state=Config.seed)
    for fold, (trn, val) in enumerate(kf.split(X, y), 1):
        model = lgb.LGBMClassifier(**Config.params)  #= model
        model.fit(X.iloc[trn], y[trn])  #= trained
        train_scores.append(log_loss(y[trn], model.predict_proba(X.iloc[trn])))  #= train-loss
        oof[val] = model.predict_proba(X.iloc[val])
        preds += model.predict_proba(X_test) / Config.n_folds  #= predicted
        print(f"Fold {fold}: {log_loss(y[val], oof[val]):.5f}")  #= test-loss
    return oof, preds, np.mean(train_scores)

train = pd.read_csv(Config.train_file)  #= data
test = pd.read_csv(Config.test_file)  #= data
y = np.where(train["winner_model_a"] == 1, 0, np.where(train["winner_model_b"] == 1, 1, 2))
X, X_test = build_features(train), build_features(test)
oof, preds, train_loss = train_cv(X, y, X_test)  #= model, trained, train-loss, test-loss, predicted
print(f"Train loss: {train_loss:.5f}")  #= train-loss
print(f"OOF loss: {log_loss(y, oof):.5f}, accuracy: {accuracy_score(y, oof.argmax(1)):.4f}")  #= test-loss
sub = pd.DataFrame({"id": test["id"]})
for i, c in enumerate(["winner_model_a", "winner_model_b", "winner_tie"]):
    sub[c] = preds[:, i]
sub.to_csv("submission.csv", index=False)
