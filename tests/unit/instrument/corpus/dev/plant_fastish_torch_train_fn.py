import os, time
import numpy as np, pandas as pd
import torch, torchvision
from torch import nn, optim
from torchvision import transforms as T
from torch.utils.data import Dataset, DataLoader, Subset
from PIL import Image  #= packages

root = "/workdir/plant-pathology-2020-fgvc7/prepared/public"
cols = ["healthy", "multiple_diseases", "rust", "scab"]
dev = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")

class DS(Dataset):
    def __init__(self, csv, tf):
        self.df = pd.read_csv(os.path.join(root, csv))  #= data
        self.tf = tf
    def __len__(self): return len(self.df)
    def __getitem__(self, i):
        r = self.df.iloc[i]
        im = Image.open(os.path.join(root, "images", r["image_id"] + ".jpg"))  #= data
        y = r[cols].values.astype(np.float32) if cols[0] in self.df else np.zeros(4, np.float32)
        return self.tf(im), torch.from_numpy(y)

tf = T.Compose([T.Resize((128, 128)), T.ToTensor()])
full = DS("train.csv", tf)  #= data
test = DS("test.csv", tf)  #= data
idx = np.random.permutation(len(full))
n = int(.85 * len(idx))
loaders = {
    "train": DataLoader(Subset(full, idx[:n]), batch_size=32, shuffle=True),
    "val": DataLoader(Subset(full, idx[n:]), batch_size=32),
}
net = torchvision.models.mobilenet_v2(num_classes=4).to(dev)  #= model
crit = nn.BCEWithLogitsLoss()
opt = optim.Adam(net.parameters(), 3e-4)

for ep in range(4):  #= trained, train-loss?, test-loss?
    t0 = time.time()
    for phase in ["train", "val"]:  #= train-loss?, test-loss?, trained?
        net.train() if phase == "train" else net.eval()
        run_loss = 0.0
        for x, y in loaders[phase]:  #= trained?
            x, y = x.to(dev), y.to(dev)
            opt.zero_grad()
            with torch.set_grad_enabled(phase == "train"):
                out = net(x)
                loss = crit(out, y)  #= train-loss
                if phase == "train":
                    loss.backward()
                    opt.step()
            run_loss += loss.item() * x.size(0)
        print(f"{ep} {phase} {run_loss / len(loaders[phase].dataset):.4f} {time.time() - t0:.1f}s")

net.eval()
res = []
with torch.no_grad():
    for x, _ in DataLoader(test, batch_size=64):
        res.append(torch.sigmoid(net(x.to(dev))).cpu().numpy())  #= predicted
sub = pd.DataFrame(np.vstack(res), columns=cols)
sub.insert(0, "image_id", test.df["image_id"])
sub.to_csv("submission.csv", index=False)
