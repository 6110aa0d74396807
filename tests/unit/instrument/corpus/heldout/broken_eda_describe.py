import pandas as pd
import numpy as np
import os  #= packages

path = "/workdir/lmsys-chatbot-arena/prepared/public"
print(os.listdir(path))
train = pd.read_csv(os.path.join(path, "train.csv"))  #= data
test = pd.read_csv(os.path.join(path, "test.csv"))  #= data
print(train.info())
print(train.isnull().sum())
print(train[["winner_model_a", "winner_model_b", "winner_tie"]].mean())
print("Average response length a:", train["response_a"].str.len().mean())
print("Average response length b:", train["response_b"].str.len().mean())
print("Unique models:", train["model_a"].nunique())
counts = train.groupby("model_a")["winner_model_a"].mean().sort_values(ascending=False)
print(counts.head(10))
# The next step would be to train a model on these features
