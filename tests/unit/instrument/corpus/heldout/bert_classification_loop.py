import pandas as pd
import numpy as np
import torch
from torch.utils.data import TensorDataset, DataLoader, RandomSampler, SequentialSampler
from transformers import BertTokenizer, BertForSequenceClassification
from sklearn.model_selection import train_test_split
from tqdm import tqdm  #= packages

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
train = pd.read_csv("train.csv")  #= data
test = pd.read_csv("test.csv")  #= data
label_map = {"EAP": 0, "HPL": 1, "MWS": 2}
train["label"] = train["author"].map(label_map)

tokenizer = BertTokenizer.from_pretrained("bert-base-uncased")
def encode(texts):
    enc = tokenizer(list(texts), padding="max_length", truncation=True, max_length=128, return_tensors="pt")
    return enc["input_ids"], enc["attention_mask"]

tr_df, va_df = train_test_split(train, test_size=0.1, random_state=42)
tr_ids, tr_mask = encode(tr_df["text"])
va_ids, va_mask = encode(va_df["text"])
te_ids, te_mask = encode(test["text"])
train_ds = TensorDataset(tr_ids, tr_mask, torch.tensor(tr_df["label"].values))
val_ds = TensorDataset(va_ids, va_mask, torch.tensor(va_df["label"].values))
test_ds = TensorDataset(te_ids, te_mask)
train_dl = DataLoader(train_ds, sampler=RandomSampler(train_ds), batch_size=16)
val_dl = DataLoader(val_ds, sampler=SequentialSampler(val_ds), batch_size=32)
test_dl = DataLoader(test_ds, batch_size=32)

model = BertForSequenceClassification.from_pretrained("bert-base-uncased", num_labels=3)  #= model
model.to(device)
opt = torch.optim.AdamW(model.parameters(), lr=2e-5)
for epoch in range(2):  #= trained
    model.train()
    total_loss = 0
    for batch in tqdm(train_dl):  #= trained?
        b_ids, b_mask, b_y = [t.to(device) for t in batch]
        model.zero_grad()
        output = model(b_ids, attention_mask=b_mask, labels=b_y)
        loss = output.loss  #= train-loss
        total_loss += loss.item()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
    print("Average training loss:", total_loss / len(train_dl))  #= train-loss

    model.eval()
    val_loss, correct = 0, 0
    for batch in val_dl:
        b_ids, b_mask, b_y = [t.to(device) for t in batch]
        with torch.no_grad():
            output = model(b_ids, attention_mask=b_mask, labels=b_y)
        val_loss += output.loss.item()  #= test-loss
        correct += (output.logits.argmax(1) == b_y).sum().item()
    print("Validation loss:", val_loss / len(val_dl), "acc:", correct / len(val_ds))  #= test-loss

probs = []
model.eval()
with torch.no_grad():
    for b_ids, b_mask in test_dl:
        logits = model(b_ids.to(device), attention_mask=b_mask.to(device)).logits  #= predicted
        probs.append(torch.softmax(logits, dim=1).cpu().numpy())
probs = np.vstack(probs)
sub = pd.DataFrame(probs, columns=["EAP", "HPL", "MWS"])
sub.insert(0, "id", test["id"])
sub.to_csv("submission.csv", index=False)
