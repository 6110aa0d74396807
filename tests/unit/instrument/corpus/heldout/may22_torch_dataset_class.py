import pandas as pd
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import TensorDataset, DataLoader
from sklearn.preprocessing import StandardScaler
from sklearn.model_selection import train_test_split
from sklearn.metrics import roc_auc_score  #= packages

torch.manual_seed(0)
ROOT = '/workdir/tabular-playground-series-may-2022/prepared/public/'


class TabularModel:
    """Small wrapper around a torch network."""

    def __init__(self, n_features, lr=1e-3, epochs=5, batch_size=1024):
        self.epochs = epochs
        self.batch_size = batch_size
        self.net = nn.Sequential(  #= model
            nn.Linear(n_features, 128), nn.ReLU(),
            nn.Linear(128, 64), nn.ReLU(),
            nn.Linear(64, 1),
        )
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=lr)
        self.criterion = nn.BCEWithLogitsLoss()

    def fit(self, X, y):
        loader = DataLoader(TensorDataset(torch.tensor(X), torch.tensor(y)), batch_size=self.batch_size, shuffle=True)
        for epoch in range(self.epochs):  #= trained
            self.net.train()
            losses = []
            for xb, yb in loader:  #= trained?
                self.optimizer.zero_grad()
                loss = self.criterion(self.net(xb).squeeze(1), yb)  #= train-loss
                loss.backward()
                self.optimizer.step()
                losses.append(loss.item())
            print(f'epoch {epoch + 1}: loss {np.mean(losses):.5f}')  #= train-loss

    def predict_proba(self, X):
        self.net.eval()
        with torch.no_grad():
            return torch.sigmoid(self.net(torch.tensor(X)).squeeze(1)).numpy()


train = pd.read_csv(ROOT + 'train.csv')  #= data
test = pd.read_csv(ROOT + 'test.csv')  #= data
features = [c for c in train.columns if c not in ('id', 'target', 'f_27')]
scaler = StandardScaler()
X = scaler.fit_transform(train[features]).astype(np.float32)
X_test = scaler.transform(test[features]).astype(np.float32)
y = train['target'].values.astype(np.float32)
X_tr, X_va, y_tr, y_va = train_test_split(X, y, test_size=0.1, random_state=0)

model = TabularModel(len(features))  #= model
model.fit(X_tr, y_tr)  #= trained, train-loss
val_auc = roc_auc_score(y_va, model.predict_proba(X_va))  #= test-loss
print('validation auc:', val_auc)

test['target'] = model.predict_proba(X_test)  #= predicted
test[['id', 'target']].to_csv('submission.csv', index=False)
