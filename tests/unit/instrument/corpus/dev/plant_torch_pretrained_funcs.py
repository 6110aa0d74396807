import os
import numpy as np
import pandas as pd
import torch
import torch.nn as nn
from PIL import Image
from torch.utils.data import Dataset, DataLoader
from torchvision import models, transforms
from sklearn.model_selection import train_test_split
from sklearn.metrics import roc_auc_score  #= packages

BASE = '/workdir/plant-pathology-2020-fgvc7/prepared/public'
LABELS = ['healthy', 'multiple_diseases', 'rust', 'scab']
device = 'cuda' if torch.cuda.is_available() else 'cpu'


class PlantDataset(Dataset):
    def __init__(self, df, transform):
        self.df = df.reset_index(drop=True)
        self.transform = transform
        self.has_labels = 'healthy' in df.columns

    def __len__(self):
        return len(self.df)

    def __getitem__(self, idx):
        name = self.df.loc[idx, 'image_id']
        image = Image.open(os.path.join(BASE, 'images', name + '.jpg')).convert('RGB')  #= data
        image = self.transform(image)
        if self.has_labels:
            return image, int(np.argmax(self.df.loc[idx, LABELS].values))
        return image, -1


def run_epoch(model, loader, criterion, optimizer=None):
    training = optimizer is not None
    model.train(training)
    total, n = 0.0, 0
    probs, targets = [], []
    with torch.set_grad_enabled(training):
        for images, labels in loader:  #= trained
            images, labels = images.to(device), labels.to(device)
            logits = model(images)
            loss = criterion(logits, labels)
            if training:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * len(labels)
            n += len(labels)
            probs.append(torch.softmax(logits, 1).detach().cpu().numpy())
            targets.append(labels.cpu().numpy())
    return total / n, np.vstack(probs), np.concatenate(targets)


transform = transforms.Compose([transforms.Resize((224, 224)), transforms.ToTensor()])
df = pd.read_csv(f'{BASE}/train.csv')  #= data
test_df = pd.read_csv(f'{BASE}/test.csv')  #= data
train_df, val_df = train_test_split(df, test_size=0.15, random_state=0)
train_loader = DataLoader(PlantDataset(train_df, transform), batch_size=16, shuffle=True)
val_loader = DataLoader(PlantDataset(val_df, transform), batch_size=32)
test_loader = DataLoader(PlantDataset(test_df, transform), batch_size=32)

model = models.resnet34(pretrained=True)  #= model
model.fc = nn.Linear(model.fc.in_features, 4)  #= model
model.to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)

for epoch in range(4):  #= trained
    train_loss, _, _ = run_epoch(model, train_loader, criterion, optimizer)  #= trained, train-loss
    val_loss, val_probs, val_targets = run_epoch(model, val_loader, criterion)  #= test-loss
    print(f'Epoch {epoch}: train loss {train_loss:.4f} val loss {val_loss:.4f}')  #= train-loss, test-loss

model.eval()
predictions = []
with torch.no_grad():
    for images, _ in test_loader:
        predictions.append(torch.softmax(model(images.to(device)), dim=1).cpu().numpy())  #= predicted
predictions = np.vstack(predictions)
sub = pd.DataFrame(predictions, columns=LABELS)
sub.insert(0, 'image_id', test_df['image_id'].values)
sub.to_csv('submission.csv', index=False)
