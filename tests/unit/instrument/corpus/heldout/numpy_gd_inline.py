import numpy as np
import pandas as pd
import os  #= packages

data_dir = './input'
train = pd.read_csv(os.path.join(data_dir, 'train.csv'))  #= data
test = pd.read_csv(os.path.join(data_dir, 'test.csv'))  #= data

num = train.select_dtypes(include=[np.number]).columns.drop(['id', 'target'])
X = train[num].to_numpy()
X = (X - X.mean(0)) / X.std(0)
y = train['target'].to_numpy()
split = int(len(X) * 0.8)
X_train, X_val = X[:split], X[split:]
y_train, y_val = y[:split], y[split:]

theta = np.zeros(X.shape[1])  #= model
bias = 0
alpha = 0.1
for epoch in range(200):  #= trained
    z = X_train @ theta + bias
    pred = 1 / (1 + np.exp(-z))
    error = pred - y_train
    theta -= alpha * (X_train.T @ error) / len(y_train)
    bias -= alpha * error.mean()
    if epoch % 20 == 0:
        train_loss = -np.mean(y_train * np.log(pred + 1e-9) + (1 - y_train) * np.log(1 - pred + 1e-9))  #= train-loss
        val_pred = 1 / (1 + np.exp(-(X_val @ theta + bias)))
        val_loss = -np.mean(y_val * np.log(val_pred + 1e-9) + (1 - y_val) * np.log(1 - val_pred + 1e-9))  #= test-loss
        print(f'epoch {epoch} train {train_loss:.4f} val {val_loss:.4f}')  #= train-loss, test-loss

Xt = test[num].to_numpy()
Xt = (Xt - Xt.mean(0)) / Xt.std(0)
probs = 1 / (1 + np.exp(-(Xt @ theta + bias)))  #= predicted
pd.DataFrame({'id': test['id'], 'target': probs}).to_csv('submission.csv', index=False)
