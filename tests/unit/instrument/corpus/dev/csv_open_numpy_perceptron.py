import csv
import numpy as np  #= packages

BASE = '/workdir/tabular-playground-series-may-2022/prepared/public/'


def read_csv(path):
    with open(path) as f:
        reader = csv.reader(f)
        header = next(reader)
        rows = [row for row in reader]  #= data
    return header, rows


header, rows = read_csv(BASE + 'train.csv')  #= data
test_header, test_rows = read_csv(BASE + 'test.csv')  #= data
num = [i for i, h in enumerate(header) if h not in ('id', 'f_27', 'target')]
tcol = header.index('target')
X = np.array([[float(r[i]) for i in num] for r in rows])
y = np.array([float(r[tcol]) for r in rows])
X_test = np.array([[float(r[i]) for i in num] for r in test_rows])
mu, sd = X.mean(axis=0), X.std(axis=0)
X = (X - mu) / sd
X_test = (X_test - mu) / sd
n = int(len(X) * 0.9)
X_train, y_train, X_valid, y_valid = X[:n], y[:n], X[n:], y[n:]

w = np.random.normal(0, 0.01, X.shape[1])  #= model
b = 0.0
for epoch in range(50):  #= trained
    p = 1 / (1 + np.exp(-(X_train.dot(w) + b)))
    grad_w = X_train.T.dot(p - y_train) / len(y_train)
    grad_b = np.mean(p - y_train)
    w = w - 0.5 * grad_w
    b = b - 0.5 * grad_b
    loss = -np.mean(y_train * np.log(p + 1e-9) + (1 - y_train) * np.log(1 - p + 1e-9))  #= train-loss
    print('epoch', epoch, 'loss', loss)

pv = 1 / (1 + np.exp(-(X_valid.dot(w) + b)))
print('valid accuracy', np.mean((pv > 0.5) == y_valid))  #= test-loss
pt = 1 / (1 + np.exp(-(X_test.dot(w) + b)))  #= predicted
with open('submission.csv', 'w') as f:
    f.write('id,target\n')
    for r, v in zip(test_rows, pt):
        f.write(f'{r[0]},{v}\n')
