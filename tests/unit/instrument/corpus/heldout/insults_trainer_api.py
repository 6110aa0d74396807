import numpy as np
import pandas as pd
import torch
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    Trainer,
    TrainingArguments,
)  #= packages

MODEL = "bert-base-uncased"
DATA = "/workdir/detecting-insults-in-social-commentary/prepared/public"


class CommentDataset(torch.utils.data.Dataset):
    def __init__(self, encodings, labels=None):
        self.encodings = encodings
        self.labels = labels

    def __getitem__(self, i):
        item = {k: torch.tensor(v[i]) for k, v in self.encodings.items()}
        if self.labels is not None:
            item["labels"] = torch.tensor(int(self.labels[i]))
        return item

    def __len__(self):
        return len(self.encodings["input_ids"])


def compute_metrics(eval_pred):
    logits, labels = eval_pred
    p = torch.softmax(torch.tensor(logits), -1)[:, 1].numpy()
    return {"auc": roc_auc_score(labels, p)}  #= test-loss


def main():
    train = pd.read_csv(f"{DATA}/train.csv")  #= data
    test = pd.read_csv(f"{DATA}/test.csv")  #= data
    tok = AutoTokenizer.from_pretrained(MODEL)
    tr, va = train_test_split(train, test_size=0.1, random_state=0)
    enc = lambda d: tok(d["Comment"].tolist(), truncation=True, padding=True, max_length=256)
    ds_tr = CommentDataset(enc(tr), tr["Insult"].tolist())
    ds_va = CommentDataset(enc(va), va["Insult"].tolist())
    ds_te = CommentDataset(enc(test))

    model = AutoModelForSequenceClassification.from_pretrained(MODEL, num_labels=2)  #= model
    args = TrainingArguments("out", num_train_epochs=2, per_device_train_batch_size=16, logging_steps=50, report_to=[])
    trainer = Trainer(model=model, args=args, train_dataset=ds_tr, eval_dataset=ds_va, compute_metrics=compute_metrics)
    trainer.train()  #= trained, train-loss?
    metrics = trainer.evaluate()  #= test-loss
    print(metrics)  #= test-loss

    out = trainer.predict(ds_te)  #= predicted
    probs = torch.softmax(torch.tensor(out.predictions), -1)[:, 1].numpy()
    test["Insult"] = probs
    test[["Insult", "Date", "Comment"]].to_csv("submission.csv", index=False)


if __name__ == "__main__":
    main()
