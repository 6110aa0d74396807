import pandas as pd

data = "/workdir/tweet-sentiment-extraction/prepared/public"
test = pd.read_csv(f"{data}/test.csv")

test["selected_text"] = test["text"].fillna("")
test[["textID", "selected_text"]].to_csv("submission.csv", index=False)
