"""Gradient boosting on simple features of a request."""
import pandas as pd
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split  #> 1

BASE = "/workdir/random-acts-of-pizza/prepared/public"
SEED = 7


def load_data():
    train = pd.read_json(BASE + "/train.json")
    test = pd.read_json(BASE + "/test.json")
    return train, test


def make_features(df):
    out = pd.DataFrame(index=df.index)
    out["n_chars"] = df["request_text_edit_aware"].str.len()
    out["n_words"] = df["request_text_edit_aware"].str.split().str.len()
    out["age"] = df["requester_account_age_in_days_at_request"]
    out["comments"] = df["requester_number_of_comments_at_request"]
    out["hour"] = pd.to_datetime(df["unix_timestamp_of_request"], unit="s").dt.hour
    return out


def train_model(X_train, y_train):
    model = GradientBoostingClassifier(n_estimators=50, random_state=SEED)  #> 3
    model.fit(X_train, y_train)  #> 5
    return model


def evaluate(model, X, y):
    proba = model.predict_proba(X)[:, 1]
    return log_loss(y, proba), roc_auc_score(y, proba)


def main():
    train, test = load_data()  #> 2
    y = train["requester_received_pizza"].astype(int)
    X = make_features(train)
    X_test = make_features(test)
    X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.25, random_state=SEED)

    model = train_model(X_train, y_train)
    train_loss, train_auc = evaluate(model, X_train, y_train)  #> 4
    print(f"train loss {train_loss:.4f}, AUC {train_auc:.4f}")
    val_loss, val_auc = evaluate(model, X_val, y_val)  #> 6
    print(f"validation loss {val_loss:.4f}, AUC {val_auc:.4f}")

    preds = model.predict_proba(X_test)[:, 1]  #> 7
    sub = pd.DataFrame({"request_id": test["request_id"], "requester_received_pizza": preds})
    sub.to_csv("submission.csv", index=False)


if __name__ == "__main__":
    main()
