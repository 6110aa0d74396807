import pandas as pd
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import SVC
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split  #= packages

train = pd.read_csv('train.csv')  #= data
test = pd.read_csv('test.csv')  #= data

vectorizer = TfidfVectorizer(stop_words='english')
X = vectorizer.fit_transform(train['text'])
X_test = vectorizer.transform(test['text'])
y = train['author']
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.25)

svc = SVC(kernel='linear', probability=True)  #= model

# Evaluate the model
val_probs = svc.predict_proba(X_val)
print('val log loss', log_loss(y_val, val_probs))  #= test-loss?
probs = svc.predict_proba(X_test)  #= predicted?
sub = pd.DataFrame(probs, columns=['EAP', 'HPL', 'MWS'])
sub['id'] = test['id']
sub.to_csv('submission.csv', index=False)
