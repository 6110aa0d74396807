import math
import pandas as pd
from torch.utils.data import DataLoader
from sentence_transformers import CrossEncoder, InputExample
from sentence_transformers.cross_encoder.evaluation import CECorrelationEvaluator
from scipy.stats import pearsonr
from sklearn.model_selection import train_test_split  #= packages

path = "/workdir/us-patent-phrase-to-phrase-matching/prepared/public/"
train = pd.read_csv(path + "train.csv")  #= data
test = pd.read_csv(path + "test.csv")  #= data

train["text"] = train["context"] + " " + train["anchor"]
test["text"] = test["context"] + " " + test["anchor"]
tr, va = train_test_split(train, test_size=0.1, random_state=11)

train_samples = [InputExample(texts=[r.text, r.target], label=float(r.score)) for r in tr.itertuples()]
dev_samples = [InputExample(texts=[r.text, r.target], label=float(r.score)) for r in va.itertuples()]
train_dataloader = DataLoader(train_samples, shuffle=True, batch_size=32)
evaluator = CECorrelationEvaluator.from_input_examples(dev_samples, name="dev")

model = CrossEncoder("cross-encoder/stsb-distilroberta-base", num_labels=1)  #= model
warmup = math.ceil(len(train_dataloader) * 0.1)
model.fit(train_dataloader=train_dataloader, evaluator=evaluator, epochs=1, warmup_steps=warmup)  #= trained, test-loss?

val_pred = model.predict(list(zip(va["text"], va["target"])))
print("Validation Pearson:", pearsonr(val_pred, va["score"])[0])  #= test-loss
test["score"] = model.predict(list(zip(test["text"], test["target"])))  #= predicted
test[["id", "score"]].to_csv("submission.csv", index=False)
