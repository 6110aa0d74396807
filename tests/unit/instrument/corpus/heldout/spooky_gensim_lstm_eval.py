import re
import numpy as np
import pandas as pd
import torch
import torch.nn as nn
from gensim.models import Word2Vec
from torch.utils.data import DataLoader, TensorDataset
from sklearn.metrics import log_loss, accuracy_score  #= packages

def tokenize(t):
    return re.findall(r"[a-z']+", t.lower())

train = pd.read_csv('/workdir/spooky-author-identification/prepared/public/train.csv')  #= data
test = pd.read_csv('/workdir/spooky-author-identification/prepared/public/test.csv')  #= data
tokens = [tokenize(t) for t in train.text]
w2v = Word2Vec(tokens, vector_size=100, window=5, min_count=2, workers=2)  #= model?
index = {w: i + 1 for i, w in enumerate(w2v.wv.index_to_key)}
weights = np.vstack([np.zeros(100), w2v.wv.vectors]).astype('float32')

def to_ids(toks, n=60):
    ids = [index.get(w, 0) for w in toks][:n]
    return ids + [0] * (n - len(ids))

X = torch.tensor([to_ids(t) for t in tokens])
X_test = torch.tensor([to_ids(tokenize(t)) for t in test.text])
y = torch.tensor(train.author.map({'EAP': 0, 'HPL': 1, 'MWS': 2}).values)
perm = torch.randperm(len(X), generator=torch.Generator().manual_seed(0))
tr, va = perm[2000:], perm[:2000]

class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding.from_pretrained(torch.tensor(weights), freeze=False)
        self.rnn = nn.LSTM(100, 64, batch_first=True, bidirectional=True)
        self.out = nn.Linear(128, 3)

    def forward(self, ids):
        h, _ = self.rnn(self.emb(ids))
        return self.out(h.max(dim=1).values)

net = Reader()  #= model
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
ce = nn.CrossEntropyLoss()
batches = DataLoader(TensorDataset(X[tr], y[tr]), batch_size=64, shuffle=True)
for ep in range(4):  #= trained
    net.train()
    tot = 0.
    for xb, yb in batches:  #= trained?
        opt.zero_grad()
        l = ce(net(xb), yb)  #= train-loss
        l.backward()
        opt.step()
        tot += l.item() * len(xb)
    net.eval()
    with torch.no_grad():
        pv = torch.softmax(net(X[va]), 1).numpy()
    print(ep, 'train', tot / len(tr), 'valid', log_loss(y[va].numpy(), pv))  #= train-loss, test-loss

with torch.no_grad():
    pt = torch.softmax(net(X_test), 1).numpy()  #= predicted
pd.DataFrame({'id': test.id, 'EAP': pt[:, 0], 'HPL': pt[:, 1], 'MWS': pt[:, 2]}).to_csv('submission.csv', index=False)
