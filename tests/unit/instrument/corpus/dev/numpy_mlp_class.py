import numpy as np
import pandas as pd  #= packages


class LogisticGD:
    def __init__(self, lr=0.1, n_iter=300):
        self.lr = lr
        self.n_iter = n_iter

    def fit(self, X, y):
        n_samples, n_features = X.shape
        self.w = np.zeros(n_features)  #= model
        self.b = 0
        for it in range(self.n_iter):  #= trained
            pred = 1.0 / (1.0 + np.exp(-(np.dot(X, self.w) + self.b)))
            dw = np.dot(X.T, (pred - y)) / n_samples
            db = np.mean(pred - y)
            self.w -= self.lr * dw
            self.b -= self.lr * db

    def predict_proba(self, X):
        return 1.0 / (1.0 + np.exp(-(np.dot(X, self.w) + self.b)))


def log_loss(y, p):
    p = np.clip(p, 1e-15, 1 - 1e-15)
    return -(y * np.log(p) + (1 - y) * np.log(1 - p)).mean()


train = pd.read_json("train.json")  #= data
test = pd.read_json("test.json")  #= data
cols = ["requester_account_age_in_days_at_request", "requester_number_of_posts_at_request"]
X, Xs = train[cols].to_numpy(float), test[cols].to_numpy(float)
m, s = X.mean(0), X.std(0)
X, Xs = (X - m) / s, (Xs - m) / s
y = train["requester_received_pizza"].to_numpy(int)
k = int(len(X) * 0.8)
model = LogisticGD()  #= model?
model.fit(X[:k], y[:k])  #= model, trained
print("train loss:", log_loss(y[:k], model.predict_proba(X[:k])))  #= train-loss
print("valid loss:", log_loss(y[k:], model.predict_proba(X[k:])))  #= test-loss
test["requester_received_pizza"] = model.predict_proba(Xs)  #= predicted
test[["request_id", "requester_received_pizza"]].to_csv("submission.csv", index=False)
