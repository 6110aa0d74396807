import copy
import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, random_split  #= packages

path = '/workdir/us-patent-phrase-to-phrase-matching/prepared/public/'
train = pd.read_csv(path + 'train.csv')  #= data
test = pd.read_csv(path + 'test.csv')  #= data
chars = sorted(set(''.join(train.anchor) + ''.join(train.target) + ''.join(test.target)))
stoi = {c: i + 1 for i, c in enumerate(chars)}
enc = lambda s: torch.tensor([stoi.get(c, 0) for c in s])

class Pairs(Dataset):
    def __init__(self, df):
        self.a = [enc(s) for s in df.anchor]
        self.b = [enc(s) for s in df.target]
        self.y = torch.tensor(df.score.values if 'score' in df else np.zeros(len(df)), dtype=torch.float)
    def __len__(self):
        return len(self.a)
    def __getitem__(self, i):
        return self.a[i], self.b[i], self.y[i]

def collate(batch):
    a, b, y = zip(*batch)
    return pad_sequence(a, batch_first=True), pad_sequence(b, batch_first=True), torch.stack(y)

class CharSiamese(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.e = nn.Embedding(n + 1, 32, padding_idx=0)
        self.g = nn.GRU(32, 64, batch_first=True)
        self.h = nn.Linear(128, 1)
    def encode(self, x):
        return self.g(self.e(x))[1][-1]
    def forward(self, a, b):
        u, v = self.encode(a), self.encode(b)
        return torch.sigmoid(self.h(torch.cat([u * v, (u - v).abs()], 1))).squeeze(1)

full = Pairs(train)
n_valid = len(full) // 10
train_set, valid_set = random_split(full, [len(full) - n_valid, n_valid])
train_dl = DataLoader(train_set, 128, shuffle=True, collate_fn=collate)
valid_dl = DataLoader(valid_set, 256, collate_fn=collate)
test_dl = DataLoader(Pairs(test), 256, collate_fn=collate)

device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
model = CharSiamese(len(chars)).to(device)  #= model
opt = torch.optim.Adam(model.parameters(), 2e-3)
mse = nn.MSELoss()
best, patience, best_weights = 1e9, 0, None
epoch = 0
while patience < 3 and epoch < 30:  #= trained
    model.train()
    losses = []
    for a, b, y in train_dl:  #= trained?
        a, b, y = a.to(device), b.to(device), y.to(device)
        opt.zero_grad()
        loss = mse(model(a, b), y)  #= train-loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        losses.append(loss.item())
    model.eval()
    errs = []
    with torch.no_grad():
        for a, b, y in valid_dl:
            errs.append(mse(model(a.to(device), b.to(device)), y.to(device)).item())  #= test-loss
    val = np.mean(errs)
    print(f'{epoch}: {np.mean(losses):.4f} {val:.4f}')  #= train-loss, test-loss
    if val < best:
        best, patience, best_weights = val, 0, copy.deepcopy(model.state_dict())
    else:
        patience += 1
    epoch += 1

model.load_state_dict(best_weights)
model.eval()
scores = []
with torch.no_grad():
    for a, b, _ in test_dl:
        scores.extend(model(a.to(device), b.to(device)).cpu().tolist())  #= predicted
test['score'] = scores
test[['id', 'score']].to_csv('submission.csv', index=False)
