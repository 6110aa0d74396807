import pandas as pd

data = "/workdir/tabular-playground-series-may-2022/prepared/public"
test = pd.read_csv(f"{data}/test.csv")
pd.DataFrame({"id": test["id"], "target": 0.5}).to_csv("submission.csv", index=False)
