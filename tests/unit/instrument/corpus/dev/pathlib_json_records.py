import json
from pathlib import Path
from collections import Counter
import numpy as np
from sklearn.linear_model import Perceptron, LogisticRegression
from sklearn.metrics import roc_auc_score  #= packages

base = Path('/workdir/random-acts-of-pizza/prepared/public')
records = json.loads((base / 'train.json').read_text())  #= data
queries = json.loads((base / 'test.json').read_text())  #= data

counter = Counter(w for r in records for w in r['request_text_edit_aware'].lower().split())
vocab = {w: i for i, (w, _) in enumerate(counter.most_common(2000))}

def bag(items):
    out = np.zeros((len(items), len(vocab)))
    for i, r in enumerate(items):
        for w in r['request_text_edit_aware'].lower().split():
            if w in vocab:
                out[i, vocab[w]] += 1
    return out

X = bag(records)
y = np.array([r['requester_received_pizza'] for r in records], dtype=int)
perm = np.random.RandomState(3).permutation(len(X))
train_rows, valid_rows = perm[500:], perm[:500]
clf = LogisticRegression(C=0.01, max_iter=300)  #= model
clf.fit(X[train_rows], y[train_rows])  #= trained
print('auc train', roc_auc_score(y[train_rows], clf.predict_proba(X[train_rows])[:, 1]))  #= train-loss
print('auc valid', roc_auc_score(y[valid_rows], clf.predict_proba(X[valid_rows])[:, 1]))  #= test-loss
scores = clf.predict_proba(bag(queries))[:, 1]  #= predicted
lines = ['request_id,requester_received_pizza']
lines += [f"{q['request_id']},{s:.6f}" for q, s in zip(queries, scores)]
Path('submission.csv').write_text('\n'.join(lines))
