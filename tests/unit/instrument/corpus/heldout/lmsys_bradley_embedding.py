import pandas as pd
import numpy as np
from sentence_transformers import SentenceTransformer
from lightgbm import LGBMClassifier, early_stopping
from sklearn.model_selection import GroupShuffleSplit
from sklearn.metrics import log_loss  #= packages

BASE = "/workdir/lmsys-chatbot-arena/prepared/public/"
LABELS = ["winner_model_a", "winner_model_b", "winner_tie"]
train = pd.read_csv(BASE + "train.csv")  #= data
test = pd.read_csv(BASE + "test.csv")  #= data

encoder = SentenceTransformer("all-MiniLM-L6-v2")  #= model?

def embed(df):
    p = encoder.encode(df["prompt"].str[:1000].tolist(), batch_size=64)
    a = encoder.encode(df["response_a"].str[:1000].tolist(), batch_size=64)
    b = encoder.encode(df["response_b"].str[:1000].tolist(), batch_size=64)
    cos_a = (p * a).sum(1) / (np.linalg.norm(p, axis=1) * np.linalg.norm(a, axis=1))
    cos_b = (p * b).sum(1) / (np.linalg.norm(p, axis=1) * np.linalg.norm(b, axis=1))
    return np.column_stack([a - b, cos_a, cos_b])

X = embed(train)
X_test = embed(test)
y = np.argmax(train[LABELS].to_numpy(), axis=1)

splitter = GroupShuffleSplit(n_splits=1, test_size=0.15, random_state=8)
tr, va = next(splitter.split(X, y, groups=train["prompt"]))
gbm = LGBMClassifier(n_estimators=1000, learning_rate=0.03, num_leaves=31)  #= model
gbm.fit(X[tr], y[tr], eval_set=[(X[va], y[va])], callbacks=[early_stopping(50)])  #= trained, test-loss?
print("train loss", log_loss(y[tr], gbm.predict_proba(X[tr])))  #= train-loss
print("valid loss", log_loss(y[va], gbm.predict_proba(X[va])))  #= test-loss
print("best iteration", gbm.best_iteration_, gbm.best_score_["valid_0"]["multi_logloss"])  #= test-loss

probs = gbm.predict_proba(X_test)  #= predicted
sub = pd.DataFrame(probs, columns=LABELS)
sub.insert(0, "id", test["id"].values)
sub.to_csv("submission.csv", index=False)
