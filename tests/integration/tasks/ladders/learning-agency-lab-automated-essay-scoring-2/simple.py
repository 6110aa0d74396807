import pandas as pd
from sklearn.linear_model import LinearRegression

data = "/workdir/learning-agency-lab-automated-essay-scoring-2/prepared/public"
train = pd.read_csv(f"{data}/train.csv")
test = pd.read_csv(f"{data}/test.csv")


def features(essays):
    text = essays["full_text"]
    return pd.DataFrame({"letters": text.str.len(), "words": text.str.split().str.len()})


model = LinearRegression()
model.fit(features(train), train["score"])

predicted = model.predict(features(test)).round().clip(1, 6).astype(int)
pd.DataFrame({"essay_id": test["essay_id"], "score": predicted}).to_csv(
    "submission.csv", index=False
)
