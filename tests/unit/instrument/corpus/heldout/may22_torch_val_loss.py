import pandas as pd
import torch
from torch import nn
from torch.utils.data import Dataset, DataLoader, random_split  #= packages

class TabDS(Dataset):
    def __init__(self, frame, labels=None):
        self.x = torch.tensor(frame.values, dtype=torch.float32)
        self.y = None if labels is None else torch.tensor(labels.values, dtype=torch.float32)
    def __len__(self):
        return len(self.x)
    def __getitem__(self, i):
        if self.y is None:
            return self.x[i]
        return self.x[i], self.y[i]

df = pd.read_csv('train.csv', index_col='id')  #= data
df_test = pd.read_csv('test.csv', index_col='id')  #= data
feat = [c for c in df_test.columns if c != 'f_27']
mu, sd = df[feat].mean(), df[feat].std()
full = TabDS((df[feat] - mu) / sd, df['target'])
n_val = len(full) // 10
train_set, val_set = random_split(full, [len(full) - n_val, n_val])
train_dl = DataLoader(train_set, batch_size=4096, shuffle=True)
val_dl = DataLoader(val_set, batch_size=4096)
test_dl = DataLoader(TabDS((df_test[feat] - mu) / sd), batch_size=4096)

net = nn.Sequential(nn.Linear(len(feat), 256), nn.SiLU(), nn.Linear(256, 64), nn.SiLU(), nn.Linear(64, 1))  #= model
opt = torch.optim.Adam(net.parameters(), 1e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 20)
loss_fn = nn.BCEWithLogitsLoss()

best = float('inf')
for ep in range(20):  #= trained
    net.train()
    for xb, yb in train_dl:  #= trained?
        opt.zero_grad()
        l = loss_fn(net(xb).squeeze(1), yb)  #= train-loss
        l.backward()
        opt.step()
    sched.step()
    net.eval()
    vl = 0
    with torch.no_grad():
        for xb, yb in val_dl:
            vl += loss_fn(net(xb).squeeze(1), yb).item() * len(xb)  #= test-loss
    vl /= n_val  #= test-loss
    print(ep, l.item(), vl)  #= train-loss, test-loss
    if vl < best:
        best = vl
        torch.save(net.state_dict(), 'best.pt')

net.load_state_dict(torch.load('best.pt'))
net.eval()
outs = []
with torch.no_grad():
    for xb in test_dl:
        outs.append(torch.sigmoid(net(xb)).squeeze(1))  #= predicted
df_test['target'] = torch.cat(outs).numpy()
df_test[['target']].to_csv('submission.csv')
