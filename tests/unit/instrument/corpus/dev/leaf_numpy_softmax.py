import numpy as np
import pandas as pd  #= packages

train = pd.read_csv('train.csv')  #= data
test = pd.read_csv('test.csv')  #= data

classes = sorted(train['species'].unique())
class_to_idx = {c: i for i, c in enumerate(classes)}
y = train['species'].map(class_to_idx).values
X = train.drop(['id', 'species'], axis=1).values
X_test = test.drop(['id'], axis=1).values

mean, std = X.mean(axis=0), X.std(axis=0) + 1e-8
X = (X - mean) / std
X_test = (X_test - mean) / std

n, d = X.shape
k = len(classes)
Y = np.eye(k)[y]

rng = np.random.RandomState(0)
W = rng.randn(d, k) * 0.01  #= model
b = np.zeros(k)  #= model

def softmax(z):
    z = z - z.max(axis=1, keepdims=True)
    e = np.exp(z)
    return e / e.sum(axis=1, keepdims=True)

lr = 0.5
for step in range(500):  #= trained
    P = softmax(X @ W + b)
    loss = -np.mean(np.log(P[np.arange(n), y] + 1e-12))  #= train-loss
    grad = (P - Y) / n
    W -= lr * (X.T @ grad)
    b -= lr * grad.sum(axis=0)
    if step % 50 == 0:
        print(f'step {step} loss {loss:.4f}')  #= train-loss

probs = softmax(X_test @ W + b)  #= predicted
sub = pd.DataFrame(probs, columns=classes)
sub.insert(0, 'id', test['id'])
sub.to_csv('submission.csv', index=False)
