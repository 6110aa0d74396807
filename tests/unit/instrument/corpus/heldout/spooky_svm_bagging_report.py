import pandas as pd
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.metrics import log_loss, classification_report, confusion_matrix  #= packages

train_data = pd.read_csv("/workdir/spooky-author-identification/prepared/public/train.csv")  #= data
test_data = pd.read_csv("/workdir/spooky-author-identification/prepared/public/test.csv")  #= data

# Convert labels
author_mapping = {"EAP": 0, "HPL": 1, "MWS": 2}
inverse_mapping = {v: k for k, v in author_mapping.items()}
train_data["author"] = train_data["author"].map(author_mapping)

train_texts, val_texts, train_labels, val_labels = train_test_split(
    train_data["text"], train_data["author"], test_size=0.2, random_state=42
)
vectorizer = CountVectorizer(stop_words="english", max_features=10000)
train_vectors = vectorizer.fit_transform(train_texts)
val_vectors = vectorizer.transform(val_texts)
test_vectors = vectorizer.transform(test_data["text"])

bagging = BaggingClassifier(LogisticRegression(max_iter=200), n_estimators=10, random_state=42)  #= model
bagging.fit(train_vectors, train_labels)  #= trained

train_loss = log_loss(train_labels, bagging.predict_proba(train_vectors))  #= train-loss
print("Train Loss:", train_loss)
val_predictions = bagging.predict(val_vectors)
print(classification_report(val_labels, val_predictions))  #= test-loss
print(confusion_matrix(val_labels, val_predictions))
val_loss = log_loss(val_labels, bagging.predict_proba(val_vectors))  #= test-loss
print("Validation Loss:", val_loss)

test_predictions = bagging.predict_proba(test_vectors)  #= predicted
submission = pd.DataFrame(test_predictions, columns=["EAP", "HPL", "MWS"])
submission["id"] = test_data["id"]
submission = submission[["id", "EAP", "HPL", "MWS"]]
submission.to_csv("submission.csv", index=False)
