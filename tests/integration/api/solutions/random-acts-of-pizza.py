import json

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix, hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler  #> 1

# Load the data
with open("/workdir/random-acts-of-pizza/prepared/public/train.json") as f:
    train = pd.DataFrame(json.load(f))
with open("/workdir/random-acts-of-pizza/prepared/public/test.json") as f:
    test = pd.DataFrame(json.load(f))  #> 2

# Features: words of title and text, and a few numbers
train["all_text"] = train["request_title"] + " " + train["request_text_edit_aware"]
test["all_text"] = test["request_title"] + " " + test["request_text_edit_aware"]
numeric_cols = [
    "requester_account_age_in_days_at_request",
    "requester_number_of_comments_at_request",
    "requester_number_of_posts_at_request",
    "requester_number_of_subreddits_at_request",
]
tfidf = TfidfVectorizer(stop_words="english", max_features=500)
scaler = StandardScaler()
X = hstack(
    [
        tfidf.fit_transform(train["all_text"]),
        csr_matrix(scaler.fit_transform(np.log1p(train[numeric_cols]))),
    ]
).tocsr()
X_test = hstack(
    [
        tfidf.transform(test["all_text"]),
        csr_matrix(scaler.transform(np.log1p(test[numeric_cols]))),
    ]
).tocsr()
y = train["requester_received_pizza"].astype(int)
X_train, X_val, y_train, y_val = train_test_split(
    X, y, test_size=0.2, random_state=42, stratify=y
)

# Train the model
model = LogisticRegression(
    C=1.0, max_iter=1000, class_weight="balanced"
)  #> 3
model.fit(X_train, y_train)  #> 5

# Evaluate
train_loss = log_loss(y_train, model.predict_proba(X_train)[:, 1])  #> 4
print(f"Training loss: {train_loss:.4f}")
val_auc = roc_auc_score(y_val, model.predict_proba(X_val)[:, 1])  #> 6
print(f"Validation AUC: {val_auc:.4f}")

# Predict and save
test_pred = model.predict_proba(X_test)[:, 1]  #> 7
submission = pd.DataFrame(
    {"request_id": test["request_id"], "requester_received_pizza": test_pred}
)
submission.to_csv("./submission.csv", index=False)
