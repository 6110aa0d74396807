import pandas as pd
import numpy as np
from sklearn.linear_model import LogisticRegresion
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import roc_auc_score  #= packages

train_data = pd.read_json('/workdir/random-acts-of-pizza/prepared/public/train.json')  #= data
test_data = pd.read_json('/workdir/random-acts-of-pizza/prepared/public/test.json')  #= data

tfidf = TfidfVectorizer(max_features=5000)
X_train = tfidf.fit_transform(train_data['request_text'])
X_test = tfidf.transform(test_data['request_text'])
y_train = train_data['requester_received_pizza']

model = LogisticRegresion()  #= model
model.fit(X_train, y_train)  #= trained

train_pred = model.predict_proba(X_train)[:, 1]
train_loss = roc_auc_score(y_train, train_pred)  #= train-loss
print("Train AUC:", train_loss)

y_pred = model.predict_proba(X_test)[:, 1]  #= predicted
test_loss = roc_auc_score(y_test, y_pred)  #= test-loss?
print("Test AUC:", test_loss)

pd.DataFrame({'request_id': test_data['request_id'], 'requester_received_pizza': y_pred}).to_csv('submission.csv')
