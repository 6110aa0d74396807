import os
import numpy as np
import pandas as pd
from datasets import Dataset, DatasetDict
from transformers import AutoModelForSequenceClassification, AutoTokenizer, TrainingArguments, Trainer  #= packages

os.environ['TOKENIZERS_PARALLELISM'] = 'false'
path = '/workdir/us-patent-phrase-to-phrase-matching/prepared/public'
df = pd.read_csv(f'{path}/train.csv')  #= data
eval_df = pd.read_csv(f'{path}/test.csv')  #= data

df['input'] = 'TEXT1: ' + df.context + '; TEXT2: ' + df.target + '; ANC1: ' + df.anchor
eval_df['input'] = 'TEXT1: ' + eval_df.context + '; TEXT2: ' + eval_df.target + '; ANC1: ' + eval_df.anchor

ds = Dataset.from_pandas(df)
model_nm = 'microsoft/deberta-v3-small'
tokz = AutoTokenizer.from_pretrained(model_nm)

def tok_func(x):
    return tokz(x['input'])

tok_ds = ds.map(tok_func, batched=True)
tok_ds = tok_ds.rename_columns({'score': 'labels'})
dds = tok_ds.train_test_split(0.25, seed=42)
eval_ds = Dataset.from_pandas(eval_df).map(tok_func, batched=True)

def corr_d(eval_pred):
    return {'pearson': np.corrcoef(*eval_pred)[0][1]}

args = TrainingArguments('outputs', learning_rate=8e-5, warmup_ratio=0.1, lr_scheduler_type='cosine', fp16=False,
    evaluation_strategy='epoch', per_device_train_batch_size=128, per_device_eval_batch_size=256,
    num_train_epochs=4, weight_decay=0.01, report_to='none')

model = AutoModelForSequenceClassification.from_pretrained(model_nm, num_labels=1)  #= model
trainer = Trainer(model, args, train_dataset=dds['train'], eval_dataset=dds['test'],
                  tokenizer=tokz, compute_metrics=corr_d)
trainer.train()  #= trained, train-loss?, test-loss?
print(trainer.evaluate())  #= test-loss

preds = trainer.predict(eval_ds).predictions.astype(float)  #= predicted
preds = np.clip(preds, 0, 1)
submission = pd.DataFrame({'id': eval_df['id'], 'score': preds.squeeze()})
submission.to_csv('submission.csv', index=False)
