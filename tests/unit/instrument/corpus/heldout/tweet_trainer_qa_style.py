import pandas as pd
import numpy as np
from datasets import Dataset
from transformers import AutoTokenizer, AutoModelForQuestionAnswering, TrainingArguments, Trainer, default_data_collator  #= packages

root = "/workdir/tweet-sentiment-extraction/prepared/public"
train_df = pd.read_csv(f"{root}/train.csv").dropna().reset_index(drop=True)  #= data
test_df = pd.read_csv(f"{root}/test.csv")  #= data
test_df["text"] = test_df["text"].fillna("")
checkpoint = "distilbert-base-uncased"
tokenizer = AutoTokenizer.from_pretrained(checkpoint)

def prepare_train(examples):
    enc = tokenizer(examples["sentiment"], examples["text"], truncation="only_second", max_length=128, padding="max_length", return_offsets_mapping=True)
    starts, ends = [], []
    for i, offsets in enumerate(enc["offset_mapping"]):
        s = examples["text"][i].find(examples["selected_text"][i])
        e = s + len(examples["selected_text"][i])
        ids = enc.sequence_ids(i)
        inside = [k for k, (a, b) in enumerate(offsets) if ids[k] == 1 and a < e and b > s]
        starts.append(inside[0] if inside else 0)
        ends.append(inside[-1] if inside else 0)
    enc["start_positions"], enc["end_positions"] = starts, ends
    enc.pop("offset_mapping")
    return enc

def prepare_test(examples):
    return tokenizer(examples["sentiment"], examples["text"], truncation="only_second", max_length=128, padding="max_length")

ds = Dataset.from_pandas(train_df).train_test_split(0.1, seed=0)
train_ds = ds["train"].map(prepare_train, batched=True, remove_columns=ds["train"].column_names)
eval_ds = ds["test"].map(prepare_train, batched=True, remove_columns=ds["test"].column_names)
test_ds = Dataset.from_pandas(test_df).map(prepare_test, batched=True)

model = AutoModelForQuestionAnswering.from_pretrained(checkpoint)  #= model
args = TrainingArguments("tweet", learning_rate=3e-5, num_train_epochs=2, per_device_train_batch_size=32, report_to="none")
trainer = Trainer(model, args, train_dataset=train_ds, eval_dataset=eval_ds, data_collator=default_data_collator)
out = trainer.train()  #= trained, train-loss?
print("train loss", out.training_loss)  #= train-loss
print("eval loss", trainer.evaluate()["eval_loss"])  #= test-loss

start_logits, end_logits = trainer.predict(test_ds).predictions  #= predicted
answers = []
for i, row in test_df.iterrows():
    enc = tokenizer(row["sentiment"], row["text"], truncation="only_second", max_length=128, return_offsets_mapping=True)
    s, e = int(start_logits[i].argmax()), int(end_logits[i].argmax())
    off = enc["offset_mapping"]
    ok = row["sentiment"] != "neutral" and s <= e < len(off)
    answers.append(row["text"][off[s][0]:off[e][1]] if ok else row["text"])
test_df["selected_text"] = answers
test_df[["textID", "selected_text"]].to_csv("submission.csv", index=False)
