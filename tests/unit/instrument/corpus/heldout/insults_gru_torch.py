import re
from collections import Counter

import numpy as np
import pandas as pd
import torch
import torch.nn as nn
import torch.optim as optim
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset, DataLoader  #= packages


class CommentDataset(Dataset):
    def __init__(self, seqs, labels=None):
        self.seqs = seqs
        self.labels = labels

    def __len__(self):
        return len(self.seqs)

    def __getitem__(self, idx):
        if self.labels is None:
            return torch.tensor(self.seqs[idx]), torch.tensor(0.0)
        return torch.tensor(self.seqs[idx]), torch.tensor(float(self.labels[idx]))


def collate(batch):
    xs, ys = zip(*batch)
    return pad_sequence(xs, batch_first=True), torch.stack(ys)


class GRUNet(nn.Module):
    def __init__(self, vocab_size):
        super().__init__()
        self.emb = nn.Embedding(vocab_size, 64, padding_idx=0)
        self.gru = nn.GRU(64, 64, batch_first=True, bidirectional=True)
        self.out = nn.Linear(128, 1)

    def forward(self, x):
        h, _ = self.gru(self.emb(x))
        return self.out(h.mean(dim=1)).squeeze(1)


def tokenize(s):
    return re.findall(r"\w+", s.lower())


def main():
    train = pd.read_csv("train.csv")  #= data
    test = pd.read_csv("test.csv")  #= data
    counts = Counter(t for c in train["Comment"] for t in tokenize(c))
    vocab = {w: i + 2 for i, (w, _) in enumerate(counts.most_common(10000))}
    to_ids = lambda s: [vocab.get(t, 1) for t in tokenize(s)][:200] or [1]
    seqs = [to_ids(c) for c in train["Comment"]]
    test_seqs = [to_ids(c) for c in test["Comment"]]
    X_tr, X_va, y_tr, y_va = train_test_split(seqs, train["Insult"].tolist(), test_size=0.1, random_state=0)
    train_loader = DataLoader(CommentDataset(X_tr, y_tr), 64, shuffle=True, collate_fn=collate)
    valid_loader = DataLoader(CommentDataset(X_va, y_va), 64, collate_fn=collate)
    test_loader = DataLoader(CommentDataset(test_seqs), 64, collate_fn=collate)

    model = GRUNet(len(vocab) + 2)  #= model
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.BCEWithLogitsLoss()

    def predict(loader):
        model.eval()
        out = []
        with torch.no_grad():
            for xb, _ in loader:
                out.extend(torch.sigmoid(model(xb)).tolist())
        return out

    for epoch in range(4):  #= trained
        model.train()
        epoch_loss = 0
        for xb, yb in train_loader:  #= trained?
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)  #= train-loss
            loss.backward()
            optimizer.step()
            epoch_loss += loss.item()
        auc = roc_auc_score(y_va, predict(valid_loader))  #= test-loss
        print(f"epoch {epoch}: loss {epoch_loss / len(train_loader):.4f}, val auc {auc:.4f}")  #= train-loss, test-loss

    test["Insult"] = predict(test_loader)  #= predicted
    test[["Insult", "Date", "Comment"]].to_csv("submission.csv", index=False)


if __name__ == "__main__":
    main()
