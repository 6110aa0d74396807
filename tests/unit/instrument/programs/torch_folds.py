import numpy as np
import pandas as pd
import torch
from sklearn.model_selection import KFold
from sklearn.metrics import roc_auc_score  #> 1

train = pd.read_csv("train.csv")  #> 2
test = pd.read_csv("test.csv")  #> 2
X, y = train[["a"]].values, train["y"].values
X_test = torch.tensor(test[["a"]].values)
oof = np.zeros(len(train))
test_preds = np.zeros(len(test))
for fold, (tr, va) in enumerate(KFold(5).split(X)):
    net = torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.Linear(8, 1))  #> 3
    opt = torch.optim.AdamW(net.parameters())
    loss_fn = torch.nn.BCEWithLogitsLoss()
    for epoch in range(5):  #> 5
        for i in range(0, len(tr), 32):
            xb, yb = torch.tensor(X[tr][i : i + 32]), torch.tensor(y[tr][i : i + 32])
            opt.zero_grad()
            loss = loss_fn(net(xb), yb)  #> 4
            loss.backward()
            opt.step()
    net.eval()
    with torch.no_grad():
        oof[va] = net(torch.tensor(X[va])).numpy()
        test_preds += net(X_test).numpy() / 5  #> 7
    print(roc_auc_score(y[va], oof[va]))  #> 6
