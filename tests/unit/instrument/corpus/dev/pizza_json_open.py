import json
import os
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
import numpy as np
import csv  #= packages

DATA_DIR = '/workdir/random-acts-of-pizza/prepared/public'

with open(os.path.join(DATA_DIR, 'train.json')) as f:
    train = json.load(f)  #= data
with open(os.path.join(DATA_DIR, 'test.json')) as f:
    test = json.load(f)  #= data

def featurize(row):
    text = row.get('request_text_edit_aware', '')
    return [
        len(text),
        len(text.split()),
        row.get('requester_account_age_in_days_at_request', 0),
        row.get('requester_upvotes_minus_downvotes_at_request', 0),
        int('please' in text.lower()),
    ]

X = np.array([featurize(r) for r in train])
y = np.array([int(r['requester_received_pizza']) for r in train])
X_te = np.array([featurize(r) for r in test])

X_tr, X_va, y_tr, y_va = train_test_split(X, y, test_size=0.25, random_state=0)
clf = RandomForestClassifier(n_estimators=300, min_samples_leaf=5, n_jobs=-1)  #= model
clf.fit(X_tr, y_tr)  #= trained
auc_tr = roc_auc_score(y_tr, clf.predict_proba(X_tr)[:, 1])  #= train-loss
auc_va = roc_auc_score(y_va, clf.predict_proba(X_va)[:, 1])  #= test-loss
print(f'train auc {auc_tr:.4f} | valid auc {auc_va:.4f}')

clf.fit(X, y)  #= trained
probs = clf.predict_proba(X_te)[:, 1]  #= predicted
with open('submission.csv', 'w', newline='') as f:
    w = csv.writer(f)
    w.writerow(['request_id', 'requester_received_pizza'])
    for r, p in zip(test, probs):
        w.writerow([r['request_id'], p])
