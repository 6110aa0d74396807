import pandas as pd
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.metrics import log_loss  #= packages

# Load data
train_data = pd.read_csv('./train.csv')  #= data
test_data = pd.read_csv('./test.csv')  #= data

# Features
tfidf = TfidfVectorizer(max_features=10000)
X = tfidf.fit_transform(train_data['prompt'] + train_data['response_a'] + train_data['response_b'])
y = train_data[['winner_model_a', 'winner_model_b', 'winner_tie']]

X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, random_state=42)

# Train
model = LogisticRegression(multi_class='multinomial')  #= model
model.fit(X_train, y_train)  #= trained

# Evaluate
y_train_pred = model.predict_prob(X_train)
train_loss = log_loss(y_train, y_train_pred)  #= train-loss?
y_val_pred = model.predict_proba(X_val)
val_loss = log_loss(y_val, y_val_pred)  #= test-loss
print(f'Validation Loss: {val_loss}')

# Predict
X_test = tfidf.transform(test_data['prompt'] + test_data['response_a'] + test_data['response_b'])
y_test_pred = model.predict_proba(X_test)  #= predicted
submission = pd.DataFrame(y_test_pred, columns=['winner_model_a', 'winner_model_b', 'winner_tie'])
submission['id'] = test_data['id']
submission.to_csv('submission.csv', index=False)
