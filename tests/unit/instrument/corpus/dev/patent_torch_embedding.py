import math
import random
import numpy as np
import pandas as pd
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import Dataset, DataLoader  #= packages

def seed_everything(seed=42):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)

seed_everything()

class PhraseDataset(Dataset):
    def __init__(self, df, vocab, train=True):
        self.a = [self.enc(s, vocab) for s in df['anchor']]
        self.t = [self.enc(s, vocab) for s in df['target']]
        self.y = df['score'].values if train else np.zeros(len(df))
    @staticmethod
    def enc(s, vocab):
        ids = [vocab.get(w, 1) for w in s.split()][:10]
        return ids + [0] * (10 - len(ids))
    def __len__(self):
        return len(self.a)
    def __getitem__(self, i):
        return torch.tensor(self.a[i]), torch.tensor(self.t[i]), torch.tensor(self.y[i], dtype=torch.float)

class Siamese(nn.Module):
    def __init__(self, n_vocab, dim=64):
        super().__init__()
        self.emb = nn.EmbeddingBag(n_vocab, dim, padding_idx=0)
        self.head = nn.Linear(dim * 3, 1)
    def forward(self, a, t):
        ea, et = self.emb(a), self.emb(t)
        return self.head(torch.cat([ea, et, torch.abs(ea - et)], dim=1)).squeeze(-1)

def run_epoch(model, loader, optimizer=None):
    training = optimizer is not None
    model.train(training)
    losses, preds = [], []
    for a, t, y in loader:  #= trained
        with torch.set_grad_enabled(training):
            out = model(a, t)
            loss = F.mse_loss(out, y)
        if training:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
        preds.append(torch.sigmoid(out).detach().numpy())
    return np.mean(losses), np.concatenate(preds)

train_df = pd.read_csv('train.csv')  #= data
test_df = pd.read_csv('test.csv')  #= data
vocab = {'<pad>': 0, '<unk>': 1}
for col in ['anchor', 'target']:
    for s in train_df[col]:
        for w in s.split():
            vocab.setdefault(w, len(vocab))

msk = np.random.rand(len(train_df)) < 0.9
trn_df, val_df = train_df[msk], train_df[~msk]
trn_loader = DataLoader(PhraseDataset(trn_df, vocab), batch_size=256, shuffle=True)
val_loader = DataLoader(PhraseDataset(val_df, vocab), batch_size=512)
tst_loader = DataLoader(PhraseDataset(test_df, vocab, train=False), batch_size=512)

model = Siamese(len(vocab))  #= model
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(4):  #= trained
    train_loss, _ = run_epoch(model, trn_loader, optimizer)  #= train-loss, trained
    val_loss, val_preds = run_epoch(model, val_loader)  #= test-loss
    corr = np.corrcoef(val_preds, val_df['score'])[0, 1]  #= test-loss
    print(f'Epoch {epoch}: train_loss={train_loss:.4f} val_loss={val_loss:.4f} pearson={corr:.4f}')  #= test-loss, train-loss

_, test_preds = run_epoch(model, tst_loader)  #= predicted
test_df['score'] = test_preds
test_df[['id', 'score']].to_csv('submission.csv', index=False)
