import torch
import torch.nn as nn
import pandas as pd
from torch.utils.data import DataLoader, TensorDataset
from sklearn.model_selection import train_test_split  #> 1

train = pd.read_csv("train.csv")  #> 2
test = pd.read_csv("test.csv")  #> 2
X = train.drop(columns=["y"]).values
X_tr, X_va, y_tr, y_va = train_test_split(X, train["y"].values)


class Net(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(d, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x):
        return self.body(x)


train_loader = DataLoader(TensorDataset(torch.tensor(X_tr), torch.tensor(y_tr)), batch_size=64)
val_loader = DataLoader(TensorDataset(torch.tensor(X_va), torch.tensor(y_va)), batch_size=64)
device = "cuda" if torch.cuda.is_available() else "cpu"
model = Net(X.shape[1]).to(device)  #> 3
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(10):  #> 5
    model.train()
    total = 0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(xb.to(device)), yb)  #> 4
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        for xb, yb in val_loader:
            val_loss = criterion(model(xb), yb)  #> 6
    print(epoch, total)
with torch.no_grad():
    logits = model(torch.tensor(test.values))  #> 7
    out = torch.sigmoid(logits).numpy()
pd.DataFrame({"y": out}).to_csv("submission.csv")
