import copy
import numpy as np
import pandas as pd
import torch
import torch.nn as nn
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import LabelEncoder, StandardScaler
from torch.utils.data import DataLoader, TensorDataset  #= packages


class LeafNet(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(d_in, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Dropout(0.4), nn.Linear(256, d_out))

    def forward(self, x):
        return self.layers(x)


class Learner:
    def __init__(self, model, lr=1e-3, patience=10):
        self.model = model
        self.opt = torch.optim.Adam(model.parameters(), lr=lr)
        self.loss_fn = nn.CrossEntropyLoss()
        self.patience = patience

    def _step(self, xb, yb):
        self.opt.zero_grad()
        loss = self.loss_fn(self.model(xb), yb)  #= train-loss
        loss.backward()
        self.opt.step()
        return loss.item()

    def fit(self, train_dl, val_dl, epochs):
        best, wait, state = np.inf, 0, None
        for epoch in range(epochs):  #= trained
            self.model.train()
            losses = [self._step(xb, yb) for xb, yb in train_dl]  #= train-loss, trained?
            self.model.eval()
            with torch.no_grad():
                val = np.mean([self.loss_fn(self.model(xb), yb).item() for xb, yb in val_dl])  #= test-loss
            print(f"{epoch}: train {np.mean(losses):.4f}, val {val:.4f}")  #= train-loss, test-loss
            if val < best:
                best, wait, state = val, 0, copy.deepcopy(self.model.state_dict())
            else:
                wait += 1
                if wait >= self.patience:
                    break
        self.model.load_state_dict(state)

    def predict(self, X):
        self.model.eval()
        with torch.no_grad():
            return torch.softmax(self.model(X), dim=1).numpy()


train = pd.read_csv("train.csv")  #= data
test = pd.read_csv("test.csv")  #= data
le = LabelEncoder()
y = le.fit_transform(train["species"])
sc = StandardScaler()
X = sc.fit_transform(train.drop(columns=["id", "species"])).astype("float32")
X_test = sc.transform(test.drop(columns=["id"])).astype("float32")
X_tr, X_va, y_tr, y_va = train_test_split(X, y, test_size=0.1, stratify=y)

train_dl = DataLoader(TensorDataset(torch.from_numpy(X_tr), torch.from_numpy(y_tr)), batch_size=32, shuffle=True)
val_dl = DataLoader(TensorDataset(torch.from_numpy(X_va), torch.from_numpy(y_va)), batch_size=128)

learner = Learner(LeafNet(X.shape[1], len(le.classes_)))  #= model
learner.fit(train_dl, val_dl, epochs=100)  #= trained, train-loss, test-loss
probs = learner.predict(torch.from_numpy(X_test))  #= predicted
out = pd.DataFrame(probs, columns=le.classes_)
out.insert(0, "id", test["id"])
out.to_csv("submission.csv", index=False)
