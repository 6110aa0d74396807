import pandas as pd
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.metrics import roc_auc_score, log_loss  #= packages

# Load the data
train = pd.read_json('/workdir/random-acts-of-pizza/prepared/public/train.json')  #= data
test = pd.read_json('/workdir/random-acts-of-pizza/prepared/public/test.json')  #= data

# Combine title and text
train['text'] = train['request_title'] + ' ' + train['request_text_edit_aware']
test['text'] = test['request_title'] + ' ' + test['request_text_edit_aware']

vectorizer = TfidfVectorizer(max_features=5000, stop_words='english')
X = vectorizer.fit_transform(train['text'].fillna(''))
X_test = vectorizer.transform(test['text'].fillna(''))
y = train['requester_received_pizza'].astype(int)

X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, random_state=42, stratify=y)

model = LogisticRegression(C=1.0, max_iter=1000)  #= model
model.fit(X_train, y_train)  #= trained

train_pred = model.predict_proba(X_train)[:, 1]
val_pred = model.predict_proba(X_val)[:, 1]
print('Train log loss:', log_loss(y_train, train_pred))  #= train-loss
print('Validation AUC:', roc_auc_score(y_val, val_pred))  #= test-loss

test_pred = model.predict_proba(X_test)[:, 1]  #= predicted
submission = pd.DataFrame({'request_id': test['request_id'], 'requester_received_pizza': test_pred})
submission.to_csv('submission.csv', index=False)
