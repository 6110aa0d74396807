import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

data = "/workdir/detecting-insults-in-social-commentary/prepared/public"
train = pd.read_csv(f"{data}/train.csv")
test = pd.read_csv(f"{data}/test.csv")

model = make_pipeline(CountVectorizer(), LogisticRegression(C=0.1, max_iter=300))
model.fit(train["Comment"], train["Insult"])

test.insert(0, "Insult", model.predict_proba(test["Comment"])[:, 1])
test.to_csv("submission.csv", index=False)
