import os
import pandas as pd
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import Dataset, DataLoader  #= packages

class SpookyDataset(Dataset):
    def __init__(self, texts, labels, vocab):
        self.texts = texts
        self.labels = labels
        self.vocab = vocab

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, idx):
        ids = [self.vocab.get(w, 0) for w in self.texts[idx].split()]
        return torch.tensor(ids), self.labels[idx]

class LSTMClassifier(nn.Module):
    def __init__(self, vocab_size, emb=100, hidden=128, n_classes=3):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, emb)
        self.lstm = nn.LSTM(emb, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, n_classes)

    def forward(self, x):
        _, (h, _) = self.lstm(self.embedding(x))
        return self.fc(h[-1])

train = pd.read_csv('train.csv')  #= data
vocab = {}
for t in train.text:
    for w in t.split():
        vocab.setdefault(w, len(vocab) + 1)

model = LSTMClassifier(len(vocab) + 1)  #= model
optimizer = torch.optim.Adam(model.parameters())
criterion = nn.CrossEntropyLoss()

# TODO: training loop
for epoch in range(10):
    pass
