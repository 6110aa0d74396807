import numpy as np
import pandas as pd
import torch
import torch.nn as nn
from torch.utils.data import Dataset, DataLoader
from transformers import BertTokenizerFast, BertModel
from sklearn.model_selection import train_test_split
from tqdm import tqdm  #= packages

MAX_LEN = 96
tokenizer = BertTokenizerFast.from_pretrained('bert-base-uncased')


class TweetDataset(Dataset):
    def __init__(self, df, train=True):
        self.df = df.reset_index(drop=True)
        self.train = train

    def __len__(self):
        return len(self.df)

    def __getitem__(self, i):
        row = self.df.iloc[i]
        enc = tokenizer(row.sentiment, str(row.text), max_length=MAX_LEN, padding='max_length', truncation=True)
        item = {k: torch.tensor(v) for k, v in enc.items()}
        if self.train:
            item['start'] = torch.tensor(0)
            item['end'] = torch.tensor(min(MAX_LEN - 1, len(str(row.selected_text).split())))
        return item


class SpanModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.bert = BertModel.from_pretrained('bert-base-uncased')
        self.fc = nn.Linear(768, 2)

    def forward(self, ids, mask):
        h = self.bert(ids, attention_mask=mask)[0]
        logits = self.fc(h)
        return logits[..., 0], logits[..., 1]


def loss_fn(start_logits, end_logits, start, end):
    ce = nn.CrossEntropyLoss()
    return ce(start_logits, start) + ce(end_logits, end)


train_df = pd.read_csv('/workdir/tweet-sentiment-extraction/prepared/public/train.csv').dropna()  #= data
test_df = pd.read_csv('/workdir/tweet-sentiment-extraction/prepared/public/test.csv')  #= data
trn_df, val_df = train_test_split(train_df, test_size=0.1, random_state=42)
train_loader = DataLoader(TweetDataset(trn_df), batch_size=16, shuffle=True)
val_loader = DataLoader(TweetDataset(val_df), batch_size=32)
test_loader = DataLoader(TweetDataset(test_df, train=False), batch_size=32)

model = SpanModel()  #= model
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-5)

for epoch in range(2):  #= trained
    model.train()
    losses = []
    for batch in tqdm(train_loader):  #= trained?
        s, e = model(batch['input_ids'], batch['attention_mask'])
        loss = loss_fn(s, e, batch['start'], batch['end'])  #= train-loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print('train loss', np.mean(losses))  #= train-loss
    model.eval()
    val_losses = []
    with torch.no_grad():
        for batch in val_loader:
            s, e = model(batch['input_ids'], batch['attention_mask'])
            val_losses.append(loss_fn(s, e, batch['start'], batch['end']).item())  #= test-loss
    print('val loss', np.mean(val_losses))  #= test-loss

starts, ends = [], []
with torch.no_grad():
    for batch in test_loader:
        s, e = model(batch['input_ids'], batch['attention_mask'])  #= predicted
        starts.extend(s.argmax(1).tolist())
        ends.extend(e.argmax(1).tolist())
texts = []
for (i, row), st, en in zip(test_df.iterrows(), starts, ends):
    words = str(row.text).split()
    texts.append(' '.join(words[:max(1, en)]) if row.sentiment != 'neutral' else row.text)
test_df['selected_text'] = texts
test_df[['textID', 'selected_text']].to_csv('submission.csv', index=False)
