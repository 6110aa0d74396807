import os
import pandas as pd
import numpy as np
from PIL import Image
import torch
from torch import nn
from torch.utils.data import Dataset, DataLoader
from torchvision import models, transforms
from sklearn.model_selection import train_test_split
from sklearn.metrics import roc_auc_score
from tqdm import tqdm  #= packages

BASE = '/workdir/plant-pathology-2020-fgvc7/prepared/public'
CLASSES = ['healthy', 'multiple_diseases', 'rust', 'scab']
DEVICE = 'cuda' if torch.cuda.is_available() else 'cpu'


class PlantDataset(Dataset):
    def __init__(self, df, transform=None, is_test=False):
        self.df = df.reset_index(drop=True)
        self.transform = transform
        self.is_test = is_test

    def __len__(self):
        return len(self.df)

    def __getitem__(self, idx):
        path = os.path.join(BASE, 'images', self.df.loc[idx, 'image_id'] + '.jpg')
        image = Image.open(path).convert('RGB')  #= data
        if self.transform:
            image = self.transform(image)
        if self.is_test:
            return image
        label = torch.tensor(self.df.loc[idx, CLASSES].values.astype(float)).argmax()
        return image, label


def train_one_epoch(model, loader, criterion, optimizer):
    model.train()
    total = 0
    for images, labels in tqdm(loader):  #= trained
        images, labels = images.to(DEVICE), labels.to(DEVICE)
        optimizer.zero_grad()
        loss = criterion(model(images), labels)  #= train-loss
        loss.backward()
        optimizer.step()
        total += loss.item() * images.size(0)
    return total / len(loader.dataset)


def validate(model, loader, criterion):
    model.eval()
    total = 0
    with torch.no_grad():
        for images, labels in loader:
            images, labels = images.to(DEVICE), labels.to(DEVICE)
            loss = criterion(model(images), labels)  #= test-loss
            total += loss.item() * images.size(0)
    return total / len(loader.dataset)


def predict(model, loader):
    model.eval()
    preds = []
    with torch.no_grad():
        for images in loader:
            logits = model(images.to(DEVICE))  #= predicted
            preds.append(torch.softmax(logits, dim=1).cpu().numpy())
    return np.concatenate(preds)


train_df = pd.read_csv(os.path.join(BASE, 'train.csv'))  #= data
test_df = pd.read_csv(os.path.join(BASE, 'test.csv'))  #= data
trn, val = train_test_split(train_df, test_size=0.15, random_state=42)

tfm = transforms.Compose([transforms.Resize((224, 224)), transforms.ToTensor(),
                          transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])
train_loader = DataLoader(PlantDataset(trn, tfm), batch_size=32, shuffle=True, num_workers=2)
val_loader = DataLoader(PlantDataset(val, tfm), batch_size=32)
test_loader = DataLoader(PlantDataset(test_df, tfm, is_test=True), batch_size=32)

model = models.resnet18(weights=None)  #= model
model.fc = nn.Linear(model.fc.in_features, 4)
model = model.to(DEVICE)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

for epoch in range(5):
    tr_loss = train_one_epoch(model, train_loader, criterion, optimizer)  #= trained, train-loss
    va_loss = validate(model, val_loader, criterion)  #= test-loss
    tqdm.write(f'epoch {epoch}: train {tr_loss:.4f} val {va_loss:.4f}')  #= train-loss, test-loss

probs = predict(model, test_loader)  #= predicted
sub = pd.DataFrame(probs, columns=CLASSES)
sub.insert(0, 'image_id', test_df['image_id'])
sub.to_csv('submission.csv', index=False)
