import torch
import torch.nn as nn
import pandas as pd
from torch.utils.data import Dataset, DataLoader
from transformers import AutoTokenizer, AutoModel  #= packages

class PatentDataset(Dataset):
    def __init__(self, df, tokenizer, max_len=64):
        self.df = df
        self.tokenizer = tokenizer
        self.max_len = max_len

    def __len__(self):
        return len(self.df)

    def __getitem__(self, index):
        row = self.df.iloc[index]
        text = row['anchor'] + ' [SEP] ' + row['target'] + ' [SEP] ' + row['context']
        enc = self.tokenizer(text, max_length=self.max_len, padding='max_length', truncation=True, return_tensors='pt')
        return {k: v.squeeze(0) for k, v in enc.items()}, torch.tensor(row['score'], dtype=torch.float)

class PatentModel(nn.Module):
    def __init__(self, name='microsoft/deberta-v3-small'):
        super().__init__()
        self.backbone = AutoModel.from_pretrained(name)
        self.head = nn.Linear(self.backbone.config.hidden_size, 1)

    def forward(self, **kw):
        hidden = self.backbone(**kw).last_hidden_state[:, 0]
        return self.head(hidden).squeeze(-1)

train_df = pd.read_csv('/workdir/us-patent-phrase-to-phrase-matching/prepared/public/train.csv')  #= data
tokenizer = AutoTokenizer.from_pretrained('microsoft/deberta-v3-small')
dataset = PatentDataset(train_df, tokenizer)
loader = DataLoader(dataset, batch_size=16, shuffle=True)
model = PatentModel()  #= model
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
loss_fn = nn.MSELoss()

def train_model(model, loader, epochs):
    # TODO: write the training loop
    raise NotImplementedError
