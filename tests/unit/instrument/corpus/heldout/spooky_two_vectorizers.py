# Plan: TF-IDF word and char n-grams, logistic regression, log loss on a hold-out set.
import pandas as pd
import numpy as np
from scipy.sparse import hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.metrics import log_loss  #= packages

# Load the data
data_path = '/workdir/spooky-author-identification/prepared/public/'
train_df = pd.read_csv(data_path + 'train.csv')  #= data
test_df = pd.read_csv(data_path + 'test.csv')  #= data

# Preprocess
word_vec = TfidfVectorizer(analyzer='word', ngram_range=(1, 2), max_features=20000)
char_vec = TfidfVectorizer(analyzer='char', ngram_range=(2, 5), max_features=30000)
X_word = word_vec.fit_transform(train_df['text'])
X_char = char_vec.fit_transform(train_df['text'])
X = hstack([X_word, X_char]).tocsr()
y = train_df['author'].values

X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, random_state=42, stratify=y)

# Train the model
model = LogisticRegression(C=5.0, solver='saga', max_iter=200)  #= model
model.fit(X_train, y_train)  #= trained

# Evaluate
train_probs = model.predict_proba(X_train)
train_loss = log_loss(y_train, train_probs)  #= train-loss
val_probs = model.predict_proba(X_val)
val_loss = log_loss(y_val, val_probs)  #= test-loss
print(f"Training Loss: {train_loss:.5f}")
print(f"Validation Loss: {val_loss:.5f}")

# Predict on test
X_test = hstack([word_vec.transform(test_df['text']), char_vec.transform(test_df['text'])]).tocsr()
test_probs = model.predict_proba(X_test)  #= predicted
submission = pd.DataFrame(test_probs, columns=model.classes_)
submission.insert(0, 'id', test_df['id'])
submission[['id', 'EAP', 'HPL', 'MWS']].to_csv('./submission.csv', index=False)
