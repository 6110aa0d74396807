import torch
import pandas as pd
from torch.utils.data import DataLoader
from transformers import AutoTokenizer, AutoModelForSequenceClassification, get_linear_schedule_with_warmup
from torch.optim import AdamW
from sklearn.model_selection import train_test_split
from sklearn.metrics import log_loss
import numpy as np  #= packages

MODEL = 'distilbert-base-uncased'
train = pd.read_csv('train.csv').head(10000)  #= data
test = pd.read_csv('test.csv')  #= data
train['label'] = train[['winner_model_a', 'winner_model_b', 'winner_tie']].to_numpy().argmax(axis=1)
train['text'] = train['prompt'] + ' [A] ' + train['response_a'] + ' [B] ' + train['response_b']
test['text'] = test['prompt'] + ' [A] ' + test['response_a'] + ' [B] ' + test['response_b']
tr, va = train_test_split(train, test_size=0.1, random_state=0)

tokenizer = AutoTokenizer.from_pretrained(MODEL)

class ArenaDataset(torch.utils.data.Dataset):
    def __init__(self, texts, labels=None):
        self.enc = tokenizer(list(texts), truncation=True, padding='max_length', max_length=256)
        self.labels = labels
    def __len__(self):
        return len(self.enc['input_ids'])
    def __getitem__(self, i):
        item = {k: torch.tensor(v[i]) for k, v in self.enc.items()}
        if self.labels is not None:
            item['labels'] = torch.tensor(self.labels[i])
        return item

train_loader = DataLoader(ArenaDataset(tr.text, tr.label.tolist()), batch_size=16, shuffle=True)
val_loader = DataLoader(ArenaDataset(va.text, va.label.tolist()), batch_size=32)
test_loader = DataLoader(ArenaDataset(test.text), batch_size=32)

device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
model = AutoModelForSequenceClassification.from_pretrained(MODEL, num_labels=3).to(device)  #= model
optimizer = AdamW(model.parameters(), lr=2e-5)
EPOCHS = 2
scheduler = get_linear_schedule_with_warmup(optimizer, 0, EPOCHS * len(train_loader))

for epoch in range(EPOCHS):  #= trained
    model.train()
    for step, batch in enumerate(train_loader):  #= trained?
        batch = {k: v.to(device) for k, v in batch.items()}
        outputs = model(**batch)
        loss = outputs.loss  #= train-loss
        loss.backward()
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        if step % 100 == 0:
            print(f'epoch {epoch} step {step} loss {loss.item():.4f}')  #= train-loss
    model.eval()
    all_probs = []
    with torch.no_grad():
        for batch in val_loader:
            batch = {k: v.to(device) for k, v in batch.items()}
            all_probs.append(torch.softmax(model(**batch).logits, -1).cpu().numpy())
    print('val log loss', log_loss(va.label, np.concatenate(all_probs)))  #= test-loss

probs = []
with torch.no_grad():
    for batch in test_loader:
        batch = {k: v.to(device) for k, v in batch.items()}
        probs.append(torch.softmax(model(**batch).logits, -1).cpu().numpy())  #= predicted
probs = np.concatenate(probs)
sub = pd.DataFrame(probs, columns=['winner_model_a', 'winner_model_b', 'winner_tie'])
sub.insert(0, 'id', test['id'].values)
sub.to_csv('submission.csv', index=False)
