import csv
import io
import zipfile
import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import PassiveAggressiveClassifier, LogisticRegression
from sklearn.metrics import roc_auc_score, hinge_loss  #= packages

DATA = '/workdir/detecting-insults-in-social-commentary/prepared/public'

def read_csv(name):
    with open(f'{DATA}/{name}', encoding='utf-8') as f:
        reader = csv.DictReader(f)
        rows = [r for r in reader]  #= data
    return rows

train_rows = read_csv('train.csv')  #= data
test_rows = read_csv('test.csv')  #= data
hv = HashingVectorizer(n_features=2**18, ngram_range=(1, 2))
X = hv.transform([r['Comment'] for r in train_rows])
y = np.array([int(r['Insult']) for r in train_rows])
X_test = hv.transform([r['Comment'] for r in test_rows])

cut = int(len(y) * 0.8)
clf = LogisticRegression(C=10)  #= model
clf.fit(X[:cut], y[:cut])  #= trained
print('train auc', roc_auc_score(y[:cut], clf.decision_function(X[:cut])))  #= train-loss
print('valid auc', roc_auc_score(y[cut:], clf.decision_function(X[cut:])))  #= test-loss
p = clf.predict_proba(X_test)[:, 1]  #= predicted
with open('submission.csv', 'w', newline='', encoding='utf-8') as f:
    w = csv.writer(f)
    w.writerow(['Insult', 'Date', 'Comment'])
    for r, v in zip(test_rows, p):
        w.writerow([v, r['Date'], r['Comment']])
