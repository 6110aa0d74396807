import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss  #> 1

a = False and pd.read_csv("train.csv")
b = None if True else LogisticRegression()
c = (pd.read_csv(name) for name in ["train.csv"])
d = lambda: pd.read_csv("test.csv")
e = [pd.read_csv(name) for name in []]
f = log_loss([0, 1], [0.1, 0.9])
with open("train.csv", "w") as sink:
    sink.write("x")
g = pd.read_csv("a.csv") if b else pd.read_csv("b.csv")  #> 2
