import pandas as pd; import numpy as np
import sklearn.linear_model as lm
from sklearn.metrics import *  #> 1
tr = pd.read_csv("train.csv"); te = pd.read_csv("test.csv")  #> 2
pd.DataFrame({"p": lm.Ridge().fit(tr[["a"]], tr["y"]).predict(te[["a"]])}).to_csv("s.csv")  #> 3 5 7
reg = lm.Lasso().fit(tr[["a"]], tr["y"])  #> 3 5
print(r2_score(tr["y"], reg.predict(tr[["a"]])))  #> 4
