import argparse
import os

import numpy as np
import pandas as pd
import torch
import torch.nn as nn
import torch.nn.functional as F
from PIL import Image
from sklearn.metrics import roc_auc_score
from torch.utils.data import DataLoader, Dataset
import torchvision.transforms as T  #= packages

LABELS = ["healthy", "multiple_diseases", "rust", "scab"]


class LeafImages(Dataset):
    def __init__(self, csv_path, img_dir, tfm, labelled=True):
        self.df = pd.read_csv(csv_path)  #= data
        self.img_dir, self.tfm, self.labelled = img_dir, tfm, labelled

    def __len__(self):
        return len(self.df)

    def __getitem__(self, i):
        row = self.df.iloc[i]
        img = self.tfm(Image.open(os.path.join(self.img_dir, f"{row.image_id}.jpg")))  #= data
        if self.labelled:
            return img, torch.tensor(row[LABELS].values.astype("float32"))
        return img


class SmallCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.fc = nn.Linear(32 * 16 * 16, 4)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc(x.flatten(1))


def train_epoch(model, loader, opt):
    model.train()
    running = 0.0
    for x, y in loader:  #= trained
        opt.zero_grad()
        loss = F.binary_cross_entropy_with_logits(model(x), y)  #= train-loss
        loss.backward()
        opt.step()
        running += loss.item()
    return running / len(loader)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    ps, ys = [], []
    for x, y in loader:
        ps.append(torch.sigmoid(model(x)).numpy())
        ys.append(y.numpy())
    return roc_auc_score(np.vstack(ys), np.vstack(ps))


@torch.no_grad()
def infer(model, loader):
    model.eval()
    return np.vstack([torch.sigmoid(model(x)).numpy() for x in loader])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--root", default="/workdir/plant-pathology-2020-fgvc7/prepared/public")
    ap.add_argument("--epochs", type=int, default=3)
    args = ap.parse_args()
    tfm = T.Compose([T.Resize((64, 64)), T.ToTensor()])
    images = os.path.join(args.root, "images")
    full = LeafImages(os.path.join(args.root, "train.csv"), images, tfm)  #= data
    test = LeafImages(os.path.join(args.root, "test.csv"), images, tfm, labelled=False)  #= data
    n_val = len(full) // 5
    train_ds, val_ds = torch.utils.data.random_split(full, [len(full) - n_val, n_val])
    train_dl = DataLoader(train_ds, 32, shuffle=True)
    val_dl = DataLoader(val_ds, 64)
    test_dl = DataLoader(test, 64)

    model = SmallCNN()  #= model
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(args.epochs):  #= trained
        loss = train_epoch(model, train_dl, opt)  #= train-loss, trained
        auc = evaluate(model, val_dl)  #= test-loss
        print(f"epoch={epoch} loss={loss:.4f} auc={auc:.4f}")  #= train-loss, test-loss

    probs = infer(model, test_dl)  #= predicted
    sub = pd.DataFrame(probs, columns=LABELS)
    sub.insert(0, "image_id", test.df.image_id)
    sub.to_csv("submission.csv", index=False)


if __name__ == "__main__":
    main()
