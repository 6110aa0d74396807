"""The share of each state, for every leaf."""

import pandas as pd

DATA = "/workdir/plant-pathology-2020-fgvc7/prepared/public"

train = pd.read_csv(f"{DATA}/train.csv")
submission = pd.read_csv(f"{DATA}/sample_submission.csv")
for column in ["healthy", "multiple_diseases", "rust", "scab"]:
    submission[column] = train[column].mean()
submission.to_csv("submission.csv", index=False)
