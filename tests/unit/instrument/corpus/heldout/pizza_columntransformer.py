# Random Acts of Pizza - mixed features
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler  #= packages

INPUT_DIR = "/workdir/random-acts-of-pizza/prepared/public"
train_df = pd.read_json(f"{INPUT_DIR}/train.json")  #= data
test_df = pd.read_json(f"{INPUT_DIR}/test.json")  #= data

num_cols = ["requester_account_age_in_days_at_request", "requester_number_of_comments_at_request"]
text_col = "request_text_edit_aware"

preprocess = ColumnTransformer(
    transformers=[
        ("num", Pipeline([("imp", SimpleImputer()), ("sc", StandardScaler())]), num_cols),
        ("txt", TfidfVectorizer(max_features=3000), text_col),
    ]
)

clf = Pipeline(steps=[("prep", preprocess), ("lr", LogisticRegressionCV(Cs=5, cv=3, scoring="roc_auc"))])  #= model

y = train_df["requester_received_pizza"]
X_train, X_test, y_train, y_test = train_test_split(train_df, y, test_size=0.2)
clf.fit(X_train, y_train)  #= trained

y_hat = clf.predict_proba(X_test)[:, 1]
score = roc_auc_score(y_test, y_hat)  #= test-loss
print("ROC AUC on hold-out:", round(score, 4))

final_preds = clf.predict_proba(test_df)[:, 1]  #= predicted
pd.DataFrame({"request_id": test_df.request_id, "requester_received_pizza": final_preds}).to_csv("submission.csv", index=False)
