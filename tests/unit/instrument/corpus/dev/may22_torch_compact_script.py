import pandas as pd, numpy as np, torch
from torch import nn
from sklearn.metrics import roc_auc_score  #= packages
tr = pd.read_csv('/workdir/tabular-playground-series-may-2022/prepared/public/train.csv')  #= data
te = pd.read_csv('/workdir/tabular-playground-series-may-2022/prepared/public/test.csv')  #= data
num = [c for c in te if c.startswith('f_') and c != 'f_27']
mu, sd = tr[num].mean(), tr[num].std()
A = torch.tensor(((tr[num] - mu) / sd).values).float()
B = torch.tensor(((te[num] - mu) / sd).values).float()
t = torch.tensor(tr.target.values).float()
n = int(len(A) * .9)
net = nn.Sequential(nn.Linear(len(num), 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))  #= model
opt = torch.optim.Adam(net.parameters(), 1e-3)
bce = nn.BCEWithLogitsLoss()
for ep in range(5):  #= trained
    for i in range(0, n, 1024):  #= trained?
        opt.zero_grad()
        l = bce(net(A[i:min(i + 1024, n)]).squeeze(1), t[i:min(i + 1024, n)])  #= train-loss
        l.backward()
        opt.step()
    with torch.no_grad():
        v = net(A[n:]).squeeze(1)
        print(ep, 'train', l.item(), 'valid', bce(v, t[n:]).item(), 'auc', roc_auc_score(t[n:], v))  #= train-loss, test-loss
with torch.no_grad():
    te['target'] = torch.sigmoid(net(B)).squeeze(1).numpy()  #= predicted
te[['id', 'target']].to_csv('submission.csv', index=False)
