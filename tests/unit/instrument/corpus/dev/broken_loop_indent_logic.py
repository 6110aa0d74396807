import pandas as pd
import numpy as np
import torch
import torch.nn as nn  #= packages

train = pd.read_csv("/workdir/tabular-playground-series-may-2022/prepared/public/train.csv")  #= data
test = pd.read_csv("/workdir/tabular-playground-series-may-2022/prepared/public/test.csv")  #= data
X_train = torch.tensor(train.drop(columns=["target", "f_27"]).values, dtype=torch.float32)
y_train = torch.tensor(train["target"].values, dtype=torch.float32)
X_test = torch.tensor(test.values, dtype=torch.float32)

model = nn.Linear(X_train.shape[1], 1)  #= model
loss_fn = nn.BCELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(100):  #= trained
    y_pred = torch.sigmoid(model(X_train)).view(-1)
    loss = loss_fn(y_pred, y_train)  #= train-loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if (epoch + 1) % 10 == 0:
        print(f"Epoch {epoch+1}, Loss: {loss.item()}")

with torch.no_grad():
    test_pred = torch.sigmoid(model(X_test)).view(-1).numpy()  #= predicted
submission = pd.DataFrame({"id": test["ID"], "target": test_pred})
submission.to_csv("submission.csv", index=False)
