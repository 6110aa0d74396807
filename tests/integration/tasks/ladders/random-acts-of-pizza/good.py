"""Boosted trees on words and on what is known of the requester, averaged over folds."""

import lightgbm as lgb
import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold

DATA = "/workdir/random-acts-of-pizza/prepared/public"
train = pd.read_json(f"{DATA}/train.json")
test = pd.read_json(f"{DATA}/test.json")
target = train["requester_received_pizza"].astype(int)

NUMBERS = [
    "requester_account_age_in_days_at_request",
    "requester_days_since_first_post_on_raop_at_request",
    "requester_number_of_comments_at_request",
    "requester_number_of_comments_in_raop_at_request",
    "requester_number_of_posts_at_request",
    "requester_number_of_subreddits_at_request",
    "requester_upvotes_plus_downvotes_at_request",
]


def describe(requests: pd.DataFrame) -> pd.DataFrame:
    """Return the numbers of the requester, the hour and the length of each request."""
    features = requests[NUMBERS].copy()
    hour = requests["unix_timestamp_of_request"].astype("int64") % 86_400 / 86_400
    features["sine"], features["cosine"] = np.sin(2 * np.pi * hour), np.cos(2 * np.pi * hour)
    text = requests["request_text_edit_aware"]
    features["characters"], features["sentences"] = text.str.len(), text.str.count(r"\.")
    return features


vectorizer = CountVectorizer(binary=True, stop_words="english", min_df=20)
words = vectorizer.fit_transform(train["request_text_edit_aware"]).toarray()
test_words = vectorizer.transform(test["request_text_edit_aware"]).toarray()
X = np.hstack([describe(train).to_numpy(), words]).astype(np.float32)
X_test = np.hstack([describe(test).to_numpy(), test_words]).astype(np.float32)

held = np.zeros(len(X))
prediction = np.zeros(len(X_test))
folds = StratifiedKFold(4, shuffle=True, random_state=0)
for number, (inner, outer) in enumerate(folds.split(X, target)):
    model = lgb.LGBMClassifier(
        n_estimators=200,
        learning_rate=0.05,
        num_leaves=10,
        min_child_samples=10,
        subsample=0.8,
        subsample_freq=1,
        colsample_bytree=0.5,
        reg_lambda=2.0,
        n_jobs=1,
        verbose=-1,
    )
    model.fit(X[inner], target.iloc[inner])
    held[outer] = model.predict_proba(X[outer])[:, 1]
    prediction += model.predict_proba(X_test)[:, 1] / 4
    loss = log_loss(target.iloc[inner], model.predict_proba(X[inner])[:, 1])
    print(f"fold {number}: training loss {loss:.4f}")
print("validation AUC", roc_auc_score(target, held))

submission = test[["request_id"]].copy()
submission["requester_received_pizza"] = prediction
submission.to_csv("submission.csv", index=False)
