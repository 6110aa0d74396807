import numpy as np
import pandas as pd
import torch
from datasets import Dataset
from scipy.special import softmax
from sklearn.metrics import accuracy_score, log_loss
from transformers import AutoModelForSequenceClassification, AutoTokenizer, Trainer, TrainingArguments, set_seed  #= packages

set_seed(42)
MODEL_NAME = "distilroberta-base"
train = pd.read_csv("/workdir/lmsys-chatbot-arena/prepared/public/train.csv")  #= data
test = pd.read_csv("/workdir/lmsys-chatbot-arena/prepared/public/test.csv")  #= data
train["labels"] = np.argmax(train[["winner_model_a", "winner_model_b", "winner_tie"]].values, axis=1)
for d in (train, test):
    d["text"] = d["prompt"] + "</s>" + d["response_a"] + "</s>" + d["response_b"]

tok = AutoTokenizer.from_pretrained(MODEL_NAME)
ds = Dataset.from_pandas(train[["text", "labels"]]).map(lambda b: tok(b["text"], truncation=True, max_length=512), batched=True)
ds_test = Dataset.from_pandas(test[["text"]]).map(lambda b: tok(b["text"], truncation=True, max_length=512), batched=True)
split = ds.train_test_split(test_size=0.1, seed=42)

def compute_metrics(p):
    probs = softmax(p.predictions, axis=1)
    return {"log_loss": log_loss(p.label_ids, probs, labels=[0, 1, 2]), "acc": accuracy_score(p.label_ids, probs.argmax(1))}

model = AutoModelForSequenceClassification.from_pretrained(MODEL_NAME, num_labels=3)  #= model
args = TrainingArguments(output_dir="./out", per_device_train_batch_size=8, num_train_epochs=1, eval_strategy="epoch", report_to="none")
trainer = Trainer(model=model, args=args, train_dataset=split["train"], eval_dataset=split["test"], tokenizer=tok, compute_metrics=compute_metrics)
train_result = trainer.train()  #= trained, train-loss?, test-loss?
print("Training loss:", train_result.training_loss)  #= train-loss
eval_metrics = trainer.evaluate()  #= test-loss
print("Eval loss:", eval_metrics["eval_loss"])

logits = trainer.predict(ds_test).predictions  #= predicted
probs = softmax(logits, axis=1)
sub = pd.DataFrame({"id": test["id"], "winner_model_a": probs[:, 0], "winner_model_b": probs[:, 1], "winner_tie": probs[:, 2]})
sub.to_csv("submission.csv", index=False)
