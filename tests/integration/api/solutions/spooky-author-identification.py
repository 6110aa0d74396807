import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import MultinomialNB
from sklearn.preprocessing import LabelEncoder  #> 1

DATA_DIR = "/workdir/spooky-author-identification/prepared/public"

train_df = pd.read_csv(f"{DATA_DIR}/train.csv")
test_df = pd.read_csv(f"{DATA_DIR}/test.csv")
sample_submission = pd.read_csv(f"{DATA_DIR}/sample_submission.csv")  #> 2

label_encoder = LabelEncoder()
y = label_encoder.fit_transform(train_df["author"])

X_train_text, X_valid_text, y_train, y_valid = train_test_split(
    train_df["text"].values, y, test_size=0.2, random_state=42, stratify=y
)

vectorizer = CountVectorizer(ngram_range=(1, 2), min_df=2)
X_train = vectorizer.fit_transform(X_train_text)
X_valid = vectorizer.transform(X_valid_text)
X_test = vectorizer.transform(test_df["text"].values)

clf = MultinomialNB(alpha=1.0)  #> 3
clf.fit(X_train, y_train)  #> 5

train_preds = clf.predict_proba(X_train)
print("Training log loss:", log_loss(y_train, train_preds))  #> 4

valid_preds = clf.predict_proba(X_valid)
print("Validation log loss:", log_loss(y_valid, valid_preds))  #> 6

test_preds = clf.predict_proba(X_test)  #> 7

submission = pd.DataFrame(test_preds, columns=label_encoder.classes_)
submission.insert(0, "id", test_df["id"])
submission = submission[sample_submission.columns]
submission.to_csv("./submission.csv", index=False)
