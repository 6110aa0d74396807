import os
import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from transformers import AutoModel, AutoTokenizer, get_linear_schedule_with_warmup
from sklearn.metrics import cohen_kappa_score
from sklearn.model_selection import train_test_split
from tqdm import tqdm  #= packages

class CFG:
    path = '/workdir/learning-agency-lab-automated-essay-scoring-2/prepared/public'
    model_name = 'microsoft/deberta-v3-xsmall'
    max_len = 512
    batch_size = 8
    epochs = 2
    lr = 2e-5
    device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')

tokenizer = AutoTokenizer.from_pretrained(CFG.model_name)

class EssayDataset(Dataset):
    def __init__(self, df, test=False):
        self.texts = df['full_text'].values
        self.scores = None if test else df['score'].values

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        enc = tokenizer(self.texts[i], max_length=CFG.max_len, truncation=True, padding='max_length', return_tensors='pt')
        item = {k: v[0] for k, v in enc.items()}
        if self.scores is None:
            return item
        return item, torch.tensor(self.scores[i], dtype=torch.float32)

class EssayModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = AutoModel.from_pretrained(CFG.model_name)
        self.head = nn.Linear(self.backbone.config.hidden_size, 1)

    def forward(self, batch):
        h = self.backbone(**batch).last_hidden_state
        return self.head(h.mean(1)).squeeze(-1)

def train_fn(model, loader, optimizer, scheduler):
    model.train()
    losses = []
    for batch, target in tqdm(loader):  #= trained
        batch = {k: v.to(CFG.device) for k, v in batch.items()}
        loss = nn.functional.mse_loss(model(batch), target.to(CFG.device))  #= train-loss
        loss.backward()
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return np.mean(losses)

def valid_fn(model, loader):
    model.eval()
    preds, targets = [], []
    with torch.no_grad():
        for batch, target in loader:
            batch = {k: v.to(CFG.device) for k, v in batch.items()}
            preds.append(model(batch).cpu().numpy())
            targets.append(target.numpy())
    preds, targets = np.concatenate(preds), np.concatenate(targets)
    score = cohen_kappa_score(targets.astype(int), preds.round().clip(1, 6).astype(int), weights='quadratic')  #= test-loss
    return np.mean((preds - targets) ** 2), score  #= test-loss

train = pd.read_csv(os.path.join(CFG.path, 'train.csv'))  #= data
test = pd.read_csv(os.path.join(CFG.path, 'test.csv'))  #= data
tr, va = train_test_split(train, test_size=0.1, random_state=0)
train_loader = DataLoader(EssayDataset(tr), CFG.batch_size, shuffle=True)
valid_loader = DataLoader(EssayDataset(va), CFG.batch_size)

model = EssayModel().to(CFG.device)  #= model
optimizer = torch.optim.AdamW(model.parameters(), lr=CFG.lr)
scheduler = get_linear_schedule_with_warmup(optimizer, 0, CFG.epochs * len(train_loader))
best = -1
for epoch in range(CFG.epochs):  #= trained
    train_loss = train_fn(model, train_loader, optimizer, scheduler)  #= trained, train-loss
    val_loss, qwk = valid_fn(model, valid_loader)  #= test-loss
    print(f'{epoch}: train {train_loss:.4f} valid {val_loss:.4f} qwk {qwk:.4f}')  #= train-loss, test-loss
    if qwk > best:
        best = qwk
        torch.save(model.state_dict(), 'best.pt')

model.load_state_dict(torch.load('best.pt'))
model.eval()
out = []
with torch.no_grad():
    for batch in DataLoader(EssayDataset(test, test=True), CFG.batch_size):
        out.append(model({k: v.to(CFG.device) for k, v in batch.items()}).cpu().numpy())  #= predicted
test['score'] = np.concatenate(out).round().clip(1, 6).astype(int)  #= predicted
test[['essay_id', 'score']].to_csv('submission.csv', index=False)
