import pandas as pd
import torch
from torch.utils.data import Dataset, DataLoader
from transformers import DistilBertTokenizerFast, DistilBertForSequenceClassification
from torch.optim import AdamW
from sklearn.model_selection import train_test_split
import torch.nn.functional as F  #= packages

device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
train = pd.read_csv('/workdir/spooky-author-identification/prepared/public/train.csv')  #= data
test = pd.read_csv('/workdir/spooky-author-identification/prepared/public/test.csv')  #= data
label_map = {'EAP': 0, 'HPL': 1, 'MWS': 2}
train['label'] = train['author'].map(label_map)
trn, val = train_test_split(train, test_size=0.1, random_state=42)

tokenizer = DistilBertTokenizerFast.from_pretrained('distilbert-base-uncased')

class TextDataset(Dataset):
    def __init__(self, texts, labels=None):
        self.enc = tokenizer(list(texts), truncation=True, padding=True, max_length=128)
        self.labels = labels

    def __len__(self):
        return len(self.enc['input_ids'])

    def __getitem__(self, idx):
        item = {k: torch.tensor(v[idx]) for k, v in self.enc.items()}
        if self.labels is not None:
            item['labels'] = torch.tensor(self.labels[idx])
        return item

train_loader = DataLoader(TextDataset(trn['text'], trn['label'].tolist()), batch_size=16, shuffle=True)
val_loader = DataLoader(TextDataset(val['text'], val['label'].tolist()), batch_size=32)
test_loader = DataLoader(TextDataset(test['text']), batch_size=32)

model = DistilBertForSequenceClassification.from_pretrained('distilbert-base-uncased', num_labels=3).to(device)  #= model
optimizer = AdamW(model.parameters(), lr=2e-5)

for epoch in range(2):  #= trained
    model.train()
    total_loss = 0
    for batch in train_loader:  #= trained?
        optimizer.zero_grad()
        batch = {k: v.to(device) for k, v in batch.items()}
        outputs = model(**batch)
        loss = outputs.loss  #= train-loss
        loss.backward()
        optimizer.step()
        total_loss += loss.item()
    print(f'Epoch {epoch + 1} training loss: {total_loss / len(train_loader)}')  #= train-loss

    model.eval()
    val_loss = 0
    with torch.no_grad():
        for batch in val_loader:
            batch = {k: v.to(device) for k, v in batch.items()}
            val_loss += model(**batch).loss.item()  #= test-loss
    print(f'Epoch {epoch + 1} validation loss: {val_loss / len(val_loader)}')  #= test-loss

all_probs = []
model.eval()
with torch.no_grad():
    for batch in test_loader:
        batch = {k: v.to(device) for k, v in batch.items()}
        logits = model(**batch).logits  #= predicted
        all_probs.append(F.softmax(logits, dim=-1).cpu())
probs = torch.cat(all_probs).numpy()

submission = pd.DataFrame(probs, columns=['EAP', 'HPL', 'MWS'])
submission.insert(0, 'id', test['id'])
submission.to_csv('submission.csv', index=False)
