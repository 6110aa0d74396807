import json
import time
from dataclasses import dataclass, asdict

import numpy as np
import pandas as pd
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.metrics import accuracy_score, log_loss  #= packages


@dataclass
class Settings:
    train_path: str = '/workdir/tabular-playground-series-dec-2021/prepared/public/train.csv'
    test_path: str = '/workdir/tabular-playground-series-dec-2021/prepared/public/test.csv'
    epochs: int = 5
    chunk: int = 100_000
    valid_rows: int = 50_000


cfg = Settings()
print(json.dumps(asdict(cfg), indent=2))
start = time.time()
frame = pd.read_csv(cfg.train_path)  #= data
target = frame.pop('Cover_Type').to_numpy()
matrix = StandardScaler().fit_transform(frame.drop(columns='Id'))
X_valid, y_valid = matrix[:cfg.valid_rows], target[:cfg.valid_rows]
X_train, y_train = matrix[cfg.valid_rows:], target[cfg.valid_rows:]

clf = SGDClassifier(loss='log_loss', alpha=1e-5)  #= model
classes = np.unique(target)
for epoch in range(cfg.epochs):  #= trained
    for lo in range(0, len(X_train), cfg.chunk):
        clf.partial_fit(X_train[lo:lo + cfg.chunk], y_train[lo:lo + cfg.chunk], classes=classes)  #= trained
    train_ll = log_loss(y_train[:50000], clf.predict_proba(X_train[:50000]), labels=classes)  #= train-loss
    valid_acc = accuracy_score(y_valid, clf.predict(X_valid))  #= test-loss
    print(f'[{time.time() - start:.0f}s] epoch {epoch} train logloss {train_ll:.4f} valid acc {valid_acc:.4f}')

hold = pd.read_csv(cfg.test_path)  #= data
answer = clf.predict(StandardScaler().fit_transform(hold.drop(columns='Id')))  #= predicted
pd.DataFrame({'Id': hold['Id'], 'Cover_Type': answer}).to_csv('submission.csv', index=False)
