import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split  #> 1

DATA = "/workdir/random-acts-of-pizza/prepared/public"
train = pd.read_json(f"{DATA}/train.json")  #> 2
test = pd.read_json(f"{DATA}/test.json")  #> 2

vectorizer = TfidfVectorizer(stop_words="english", max_features=1000)
X = vectorizer.fit_transform(train["request_text_edit_aware"])
X_test = vectorizer.transform(test["request_text_edit_aware"])
y = train["requester_received_pizza"].astype(int)

X_tr, X_val, y_tr, y_val = train_test_split(X, y, test_size=0.2, random_state=0)
model = LogisticRegression(max_iter=1000)  #> 3
model.fit(X_tr, y_tr)  #> 5
train_auc = roc_auc_score(y_tr, model.predict_proba(X_tr)[:, 1])  #> 4
print("training auc", train_auc)
val_auc = roc_auc_score(y_val, model.predict_proba(X_val)[:, 1])  #> 6
print("validation auc", val_auc)

pred = model.predict_proba(X_test)[:, 1]  #> 7
pd.DataFrame({"request_id": test["request_id"], "requester_received_pizza": pred}).to_csv(
    "submission.csv", index=False
)
