import json
import pandas as pd
import numpy as np
from datetime import datetime
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score, StratifiedKFold
from sklearn.metrics import roc_auc_score  #= packages

DATA_PATH = "/workdir/random-acts-of-pizza/prepared/public"

def load_json(filename):
    with open(f"{DATA_PATH}/{filename}") as f:
        return pd.DataFrame(json.load(f))

def extract_features(df):
    feats = pd.DataFrame()
    feats["len"] = df["request_text_edit_aware"].apply(len)
    feats["hour"] = df["unix_timestamp_of_request"].apply(lambda t: datetime.fromtimestamp(t).hour)
    for c in df.columns:
        if c.endswith("_at_request") and df[c].dtype != object:
            feats[c] = df[c]
    return feats

def evaluate_model(model, X, y):
    cv = StratifiedKFold(n_splits=5, shuffle=True, random_state=42)
    scores = cross_val_score(model, X, y, cv=cv, scoring="roc_auc")  #= test-loss, trained?
    print(f"CV AUC: {scores.mean():.4f} +- {scores.std():.4f}")
    return scores.mean()

def generate_submission(model, test_df, X_test):
    preds = model.predict_proba(X_test)[:, 1]  #= predicted
    pd.DataFrame({"request_id": test_df["request_id"], "requester_received_pizza": preds}).to_csv("submission.csv", index=False)

def main():
    train_df = load_json("train.json")  #= data
    test_df = load_json("test.json")  #= data
    X, X_test = extract_features(train_df), extract_features(test_df)
    y = train_df["requester_received_pizza"].astype(int)
    model = RandomForestClassifier(n_estimators=500, min_samples_leaf=3)  #= model
    evaluate_model(model, X, y)  #= test-loss
    model.fit(X, y)  #= trained
    train_auc = roc_auc_score(y, model.predict_proba(X)[:, 1])  #= train-loss
    print("Train AUC:", train_auc)
    generate_submission(model, test_df, X_test)  #= predicted

main()
