import pandas as pd
import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import Dataset, DataLoader
from sklearn.preprocessing import StandardScaler, LabelEncoder
from sklearn.model_selection import train_test_split  #= packages


class CoverDataset(Dataset):
    def __init__(self, X, y=None):
        self.X = torch.tensor(X, dtype=torch.float32)
        self.y = None if y is None else torch.tensor(y, dtype=torch.long)

    def __len__(self):
        return len(self.X)

    def __getitem__(self, idx):
        if self.y is None:
            return self.X[idx]
        return self.X[idx], self.y[idx]


class MLP(nn.Module):
    def __init__(self, in_dim, out_dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(in_dim, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, out_dim))

    def forward(self, x):
        return self.net(x)


class Trainer:
    def __init__(self, model, device):
        self.model = model.to(device)
        self.device = device
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = optim.Adam(self.model.parameters(), lr=1e-3)

    def train_epoch(self, loader):
        self.model.train()
        total = 0
        for X, y in loader:  #= trained
            X, y = X.to(self.device), y.to(self.device)
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(X), y)  #= train-loss
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(loader)

    def validate(self, loader):
        self.model.eval()
        total, correct, count = 0, 0, 0
        with torch.no_grad():
            for X, y in loader:
                X, y = X.to(self.device), y.to(self.device)
                out = self.model(X)
                total += self.criterion(out, y).item()  #= test-loss
                correct += (out.argmax(1) == y).sum().item()
                count += len(y)
        return total / len(loader), correct / count

    def predict(self, loader):
        self.model.eval()
        preds = []
        with torch.no_grad():
            for X in loader:
                preds.append(self.model(X.to(self.device)).argmax(1).cpu().numpy())  #= predicted
        return np.concatenate(preds)


train = pd.read_csv('/workdir/tabular-playground-series-dec-2021/prepared/public/train.csv')  #= data
test = pd.read_csv('/workdir/tabular-playground-series-dec-2021/prepared/public/test.csv')  #= data
encoder, scaler = LabelEncoder(), StandardScaler()
y = encoder.fit_transform(train['Cover_Type'])
X = scaler.fit_transform(train.drop(['Id', 'Cover_Type'], axis=1))
X_test = scaler.transform(test.drop('Id', axis=1))
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.1, random_state=0)

train_loader = DataLoader(CoverDataset(X_train, y_train), batch_size=4096, shuffle=True)
val_loader = DataLoader(CoverDataset(X_val, y_val), batch_size=8192)
test_loader = DataLoader(CoverDataset(X_test), batch_size=8192)

device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
trainer = Trainer(MLP(X.shape[1], len(encoder.classes_)), device)  #= model
for epoch in range(10):  #= trained
    train_loss = trainer.train_epoch(train_loader)  #= trained, train-loss
    val_loss, val_acc = trainer.validate(val_loader)  #= test-loss
    print(f'Epoch {epoch+1}: train_loss={train_loss:.4f}, val_loss={val_loss:.4f}, val_acc={val_acc:.4f}')  #= train-loss, test-loss

test['Cover_Type'] = encoder.inverse_transform(trainer.predict(test_loader))  #= predicted
test[['Id', 'Cover_Type']].to_csv('submission.csv', index=False)
