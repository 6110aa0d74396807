import numpy as np
import pandas as pd
import torch
import torch.nn as nn
from torch.utils.data import Dataset, DataLoader
from transformers import RobertaTokenizerFast, RobertaModel, AdamW
from sklearn.model_selection import train_test_split  #= packages

PATH = '/workdir/tweet-sentiment-extraction/prepared/public/'
MAX_LEN = 96
tokenizer = RobertaTokenizerFast.from_pretrained('roberta-base')

class TweetDataset(Dataset):
    def __init__(self, df, train=True):
        self.df = df.reset_index(drop=True)
        self.train = train

    def __len__(self):
        return len(self.df)

    def __getitem__(self, i):
        row = self.df.loc[i]
        text = ' ' + ' '.join(str(row.text).split())
        enc = tokenizer(row.sentiment, text, max_length=MAX_LEN, padding='max_length', truncation=True, return_offsets_mapping=True)
        item = {'ids': torch.tensor(enc['input_ids']), 'mask': torch.tensor(enc['attention_mask']),
                'offsets': torch.tensor(enc['offset_mapping'])}
        if self.train:
            sel = ' ' + ' '.join(str(row.selected_text).split())
            s = text.find(sel)
            e = s + len(sel)
            hits = [k for k, (a, b) in enumerate(enc['offset_mapping']) if k > 3 and a < e and b > s and b > a]
            item['start'] = torch.tensor(hits[0] if hits else 4)
            item['end'] = torch.tensor(hits[-1] if hits else 4)
        return item

class SpanModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.roberta = RobertaModel.from_pretrained('roberta-base')
        self.fc = nn.Linear(768, 2)

    def forward(self, ids, mask):
        h = self.roberta(ids, attention_mask=mask)[0]
        start, end = self.fc(h).split(1, dim=-1)
        return start.squeeze(-1), end.squeeze(-1)

def loss_fn(start_logits, end_logits, start, end):
    ce = nn.CrossEntropyLoss()
    return ce(start_logits, start) + ce(end_logits, end)

def jaccard(a, b):
    a, b = set(a.lower().split()), set(b.lower().split())
    return len(a & b) / max(len(a | b), 1)

def decode(df, loader, model):
    model.eval()
    out = []
    with torch.no_grad():
        for batch in loader:
            s, e = model(batch['ids'], batch['mask'])
            for st, en, off in zip(s.argmax(1).tolist(), e.argmax(1).tolist(), batch['offsets'].tolist()):
                text = ' ' + ' '.join(str(df.text.iloc[len(out)]).split())
                out.append(text if st > en else text[off[st][0]:off[en][1]])
    return out

train = pd.read_csv(PATH + 'train.csv').dropna()  #= data
test = pd.read_csv(PATH + 'test.csv')  #= data
tr, va = train_test_split(train, test_size=0.1, random_state=1)
tr_loader = DataLoader(TweetDataset(tr), batch_size=32, shuffle=True)
va_loader = DataLoader(TweetDataset(va), batch_size=64)
te_loader = DataLoader(TweetDataset(test, train=False), batch_size=64)

model = SpanModel()  #= model
optimizer = AdamW(model.parameters(), lr=3e-5)
for epoch in range(3):  #= trained
    model.train()
    for i, batch in enumerate(tr_loader):  #= trained?
        optimizer.zero_grad()
        s, e = model(batch['ids'], batch['mask'])
        loss = loss_fn(s, e, batch['start'], batch['end'])  #= train-loss
        loss.backward()
        optimizer.step()
        if i % 100 == 0:
            print(f'epoch {epoch} step {i} loss {loss.item():.4f}')  #= train-loss
    va_pred = decode(va, va_loader, model)
    print('valid jaccard', np.mean([jaccard(p, t) for p, t in zip(va_pred, va.selected_text)]))  #= test-loss

test['selected_text'] = decode(test, te_loader, model)  #= predicted
test[['textID', 'selected_text']].to_csv('submission.csv', index=False)
