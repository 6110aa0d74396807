import torch
import numpy as np
import pandas as pd
from sklearn.metrics import cohen_kappa_score
from sklearn.model_selection import train_test_split
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    Trainer,
    TrainingArguments,
)  #= packages

BASE = "/workdir/learning-agency-lab-automated-essay-scoring-2/prepared/public"


class EssayDataset(torch.utils.data.Dataset):
    def __init__(self, df, tokenizer, max_len=512, with_labels=True):
        self.texts = df["full_text"].tolist()
        self.labels = (df["score"] - 1).tolist() if with_labels else None
        self.tokenizer = tokenizer
        self.max_len = max_len

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        item = self.tokenizer(self.texts[index], truncation=True, max_length=self.max_len)
        if self.labels is not None:
            item["labels"] = self.labels[index]
        return item


def compute_metrics(pred):
    logits, labels = pred
    return {"qwk": cohen_kappa_score(labels, logits.argmax(-1), weights="quadratic")}


def main():
    train_df = pd.read_csv(f"{BASE}/train.csv")  #= data
    test_df = pd.read_csv(f"{BASE}/test.csv")  #= data
    train_df, valid_df = train_test_split(train_df, test_size=0.1, random_state=42)

    checkpoint = "microsoft/deberta-v3-xsmall"
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    config = AutoConfig.from_pretrained(checkpoint, num_labels=6)
    model = AutoModelForSequenceClassification.from_pretrained(checkpoint, config=config)  #= model

    training_args = TrainingArguments(output_dir="out", num_train_epochs=1, per_device_train_batch_size=8, report_to=[])
    trainer = Trainer(
        model=model,
        args=training_args,
        train_dataset=EssayDataset(train_df, tokenizer),
        eval_dataset=EssayDataset(valid_df, tokenizer),
        data_collator=DataCollatorWithPadding(tokenizer),
        compute_metrics=compute_metrics,
    )
    result = trainer.train()  #= trained, train-loss?
    print("train loss", result.training_loss)  #= train-loss
    metrics = trainer.evaluate()  #= test-loss
    print("eval", metrics)

    output = trainer.predict(EssayDataset(test_df, tokenizer, with_labels=False))  #= predicted
    test_df["score"] = np.argmax(output.predictions, axis=1) + 1
    test_df[["essay_id", "score"]].to_csv("submission.csv", index=False)


if __name__ == "__main__":
    main()
