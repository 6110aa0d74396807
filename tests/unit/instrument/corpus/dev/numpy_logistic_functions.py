import numpy as np
import pandas as pd  #= packages


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def compute_loss(X, y, w, b):
    p = sigmoid(X.dot(w) + b)
    eps = 1e-9
    return -np.mean(y * np.log(p + eps) + (1 - y) * np.log(1 - p + eps))


def gradient_descent(X, y, lr=0.1, iterations=1000):
    m, n = X.shape
    w = np.zeros(n)  #= model
    b = 0.0  #= model
    for i in range(iterations):  #= trained
        p = sigmoid(X.dot(w) + b)
        dw = X.T.dot(p - y) / m
        db = np.sum(p - y) / m
        w = w - lr * dw
        b = b - lr * db
        if i % 100 == 0:
            print(f"iter {i}: loss {compute_loss(X, y, w, b):.4f}")  #= train-loss
    return w, b


train = pd.read_csv("train.csv")  #= data
test = pd.read_csv("test.csv")  #= data
cols = [c for c in test.columns if c.startswith("f_") and c != "f_27"]
mu, sigma = train[cols].mean(), train[cols].std()
X = ((train[cols] - mu) / sigma).values
y = train["target"].values
cut = int(0.8 * len(X))
X_tr, X_va, y_tr, y_va = X[:cut], X[cut:], y[:cut], y[cut:]

w, b = gradient_descent(X_tr, y_tr)  #= model, trained, train-loss
print("validation loss", compute_loss(X_va, y_va, w, b))  #= test-loss

X_test = ((test[cols] - mu) / sigma).values
test["target"] = sigmoid(X_test.dot(w) + b)  #= predicted
test[["id", "target"]].to_csv("submission.csv", index=False)
