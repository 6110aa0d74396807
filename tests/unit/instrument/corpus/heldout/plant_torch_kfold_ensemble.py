import os, random
import numpy as np, pandas as pd
import torch, torchvision
from torch import nn
from torch.utils.data import Dataset, DataLoader
from torchvision import transforms as T
from sklearn.model_selection import KFold
import cv2  #= packages

DATA = "/workdir/plant-pathology-2020-fgvc7/prepared/public"
TARGETS = ["healthy", "multiple_diseases", "rust", "scab"]
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

def seed_everything(s):
    random.seed(s); np.random.seed(s); torch.manual_seed(s)

class Leaves(Dataset):
    def __init__(self, df, tf):
        self.ids = df.image_id.values
        self.y = df[TARGETS].values.astype("float32") if "scab" in df else None
        self.tf = tf
    def __len__(self): return len(self.ids)
    def __getitem__(self, i):
        im = cv2.imread(f"{DATA}/images/{self.ids[i]}.jpg")  #= data
        im = self.tf(cv2.cvtColor(im, cv2.COLOR_BGR2RGB))
        return (im, self.y[i]) if self.y is not None else im

def make_net():
    net = torchvision.models.resnet18(weights=None)  #= model
    net.fc = nn.Linear(512, 4)  #= model
    return net.to(DEVICE)

def fit_fold(df_tr, df_va, tf, epochs=3):
    net = make_net()  #= model
    opt = torch.optim.Adam(net.parameters(), 3e-4)
    lossf = nn.BCEWithLogitsLoss()
    tl = DataLoader(Leaves(df_tr, tf), 32, shuffle=True)
    vl = DataLoader(Leaves(df_va, tf), 64)
    for ep in range(epochs):  #= trained
        net.train()
        tr_losses = []
        for x, y in tl:  #= trained?
            loss = lossf(net(x.to(DEVICE)), y.to(DEVICE))  #= train-loss
            opt.zero_grad(); loss.backward(); opt.step()
            tr_losses.append(loss.item())
        net.eval()
        with torch.no_grad():
            va_losses = [lossf(net(x.to(DEVICE)), y.to(DEVICE)).item() for x, y in vl]  #= test-loss
        print(ep, np.mean(tr_losses), np.mean(va_losses))  #= train-loss, test-loss
    return net

@torch.no_grad()
def predict(net, loader):
    net.eval()
    return torch.cat([torch.sigmoid(net(x.to(DEVICE))) for x in loader]).cpu().numpy()

seed_everything(0)
tf = T.Compose([T.ToTensor(), T.Resize((224, 224))])
train = pd.read_csv(f"{DATA}/train.csv")  #= data
test = pd.read_csv(f"{DATA}/test.csv")  #= data
test_loader = DataLoader(Leaves(test, tf), 64)
total = 0
for tr, va in KFold(3, shuffle=True, random_state=0).split(train):
    net = fit_fold(train.iloc[tr], train.iloc[va], tf)  #= model, trained, train-loss, test-loss
    total = total + predict(net, test_loader)  #= predicted
test[TARGETS] = total / 3
test[["image_id"] + TARGETS].to_csv("submission.csv", index=False)
