import os
import pandas as pd
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import pytorch_lightning as pl
from torch.utils.data import Dataset, DataLoader, random_split
from torchvision import transforms, models
from PIL import Image  #= packages

ROOT = '/workdir/plant-pathology-2020-fgvc7/prepared/public'
COLS = ['healthy', 'multiple_diseases', 'rust', 'scab']

class LeafDataset(Dataset):
    def __init__(self, frame, tfms):
        self.frame = frame
        self.tfms = tfms

    def __len__(self):
        return len(self.frame)

    def __getitem__(self, i):
        row = self.frame.iloc[i]
        x = self.tfms(Image.open(os.path.join(ROOT, 'images', f'{row.image_id}.jpg')))  #= data
        if 'rust' in row:
            return x, torch.tensor(row[COLS].astype(float).values, dtype=torch.float32)
        return x

class LitLeaf(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = models.efficientnet_b0(weights=None, num_classes=4)

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)  #= train-loss
        self.log('train_loss', loss, prog_bar=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)  #= test-loss
        self.log('val_loss', loss, prog_bar=True)

    def predict_step(self, batch, batch_idx):
        return torch.softmax(self(batch), dim=1)  #= predicted

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-4)

tfms = transforms.Compose([transforms.Resize((256, 256)), transforms.ToTensor()])
train_df = pd.read_csv(f'{ROOT}/train.csv')  #= data
test_df = pd.read_csv(f'{ROOT}/test.csv')  #= data
full = LeafDataset(train_df, tfms)
n_val = int(0.1 * len(full))
train_ds, val_ds = random_split(full, [len(full) - n_val, n_val])

model = LitLeaf()  #= model
trainer = pl.Trainer(max_epochs=3, logger=False)
trainer.fit(model, DataLoader(train_ds, 16, shuffle=True), DataLoader(val_ds, 16))  #= trained, train-loss?, test-loss?
print(trainer.callback_metrics)  #= train-loss?, test-loss?
preds = trainer.predict(model, DataLoader(LeafDataset(test_df, tfms), 16))  #= predicted
probs = torch.cat(preds).numpy()
out = pd.DataFrame(probs, columns=COLS)
out.insert(0, 'image_id', test_df.image_id)
out.to_csv('submission.csv', index=False)
