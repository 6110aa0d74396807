import numpy as np
import pandas as pd
import torch
from torch import nn, optim
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from PIL import Image  #> 1


class Images(Dataset):
    def __init__(self, frame, transform=None):
        self.frame = frame
        self.transform = transform

    def __len__(self):
        return len(self.frame)

    def __getitem__(self, i):
        img = Image.open(self.frame.path[i]).convert("RGB")  #> 2
        if self.transform:
            img = self.transform(img)
        return img


def train_one_epoch(model, loader, optimizer):
    model.train()
    for x, y in loader:  #> 5
        out = model(x)
        loss = F.cross_entropy(out, y)  #> 4
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def predict(model, loader):
    result = []
    for x in loader:
        result.append(model(x).softmax(1).numpy())  #> 7
    return np.concatenate(result)


def main():
    train_df = pd.read_csv("train.csv")  #> 2
    test_df = pd.read_csv("sample_submission.csv")
    train_loader = DataLoader(Images(train_df))
    test_loader = DataLoader(Images(test_df))
    model = nn.Sequential(nn.Flatten(), nn.Linear(3072, 4))  #> 3
    opt = optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        train_one_epoch(model, train_loader, opt)
    probabilities = predict(model, test_loader)
    test_df.iloc[:, 1:] = probabilities
    test_df.to_csv("submission.csv", index=False)


main()
