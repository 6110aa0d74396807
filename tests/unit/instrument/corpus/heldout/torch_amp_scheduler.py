import os
import random

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import KFold
from sklearn.metrics import mean_squared_error  #= packages

class CFG:
    root = "/workdir/learning-agency-lab-automated-essay-scoring-2/prepared/public"
    epochs = 5
    bs = 64
    lr = 1e-3
    device = "cuda" if torch.cuda.is_available() else "cpu"

class EssayDS(Dataset):
    def __init__(self, X, y=None):
        self.X, self.y = X, y
    def __len__(self):
        return self.X.shape[0]
    def __getitem__(self, i):
        x = torch.tensor(self.X[i].toarray()[0], dtype=torch.float32)
        if self.y is None:
            return x
        return x, torch.tensor(self.y[i], dtype=torch.float32)

class Regressor(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n, 128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, 1))
    def forward(self, x):
        return self.net(x).squeeze(-1)

def train_fn(loader, model, criterion, optimizer, scaler):
    model.train()
    total = 0
    for x, y in loader:  #= trained
        x, y = x.to(CFG.device), y.to(CFG.device)
        optimizer.zero_grad()
        with torch.cuda.amp.autocast(enabled=CFG.device == "cuda"):
            out = model(x)
            loss = criterion(out, y)  #= train-loss
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        total += loss.item()
    return total / len(loader)

def valid_fn(loader, model, criterion):
    model.eval()
    total, outs = 0, []
    for x, y in loader:
        x, y = x.to(CFG.device), y.to(CFG.device)
        with torch.no_grad():
            out = model(x)
        loss = criterion(out, y)  #= test-loss
        total += loss.item()
        outs.append(out.cpu().numpy())
    return total / len(loader), np.concatenate(outs)

def inference(loader, model):
    model.eval()
    outs = []
    for x in loader:
        with torch.no_grad():
            outs.append(model(x.to(CFG.device)).cpu().numpy())  #= predicted
    return np.concatenate(outs)

train = pd.read_csv(os.path.join(CFG.root, "train.csv"))  #= data
test = pd.read_csv(os.path.join(CFG.root, "test.csv"))  #= data
tf = TfidfVectorizer(max_features=5000)
X = tf.fit_transform(train["full_text"])
X_test = tf.transform(test["full_text"])
y = train["score"].values.astype(float)

final = np.zeros(len(test))
for fold, (tr, va) in enumerate(KFold(4, shuffle=True, random_state=0).split(X)):
    trl = DataLoader(EssayDS(X[tr], y[tr]), batch_size=CFG.bs, shuffle=True)
    val = DataLoader(EssayDS(X[va], y[va]), batch_size=CFG.bs)
    model = Regressor(X.shape[1]).to(CFG.device)  #= model
    criterion = nn.MSELoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=CFG.lr)
    scaler = torch.cuda.amp.GradScaler(enabled=CFG.device == "cuda")
    for epoch in range(CFG.epochs):  #= trained
        tl = train_fn(trl, model, criterion, optimizer, scaler)  #= train-loss, trained
        vl, vp = valid_fn(val, model, criterion)  #= test-loss
        print(f"fold {fold} epoch {epoch} train {tl:.4f} valid {vl:.4f} rmse {mean_squared_error(y[va], vp) ** 0.5:.4f}")  #= test-loss, train-loss
    final += inference(DataLoader(EssayDS(X_test), batch_size=CFG.bs), model) / 4  #= predicted
pd.DataFrame({"essay_id": test["essay_id"], "score": final.round().clip(1, 6).astype(int)}).to_csv("submission.csv", index=False)
