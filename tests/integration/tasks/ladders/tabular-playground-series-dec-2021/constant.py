import pandas as pd

data = "/workdir/tabular-playground-series-dec-2021/prepared/public"
train = pd.read_csv(f"{data}/train.csv")
test = pd.read_csv(f"{data}/test.csv")
most_frequent = train["Cover_Type"].mode()[0]
pd.DataFrame({"Id": test["Id"], "Cover_Type": most_frequent}).to_csv("submission.csv", index=False)
