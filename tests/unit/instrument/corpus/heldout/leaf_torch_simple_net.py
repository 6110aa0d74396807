import pandas as pd
import numpy as np
import torch
from torch import nn, optim
from sklearn.preprocessing import LabelEncoder, StandardScaler
from sklearn.model_selection import train_test_split  #= packages

train = pd.read_csv('/workdir/leaf-classification/prepared/public/train.csv')  #= data
test = pd.read_csv('/workdir/leaf-classification/prepared/public/test.csv')  #= data

le = LabelEncoder()
y = le.fit_transform(train['species'])
scaler = StandardScaler()
X = scaler.fit_transform(train.drop(['id', 'species'], axis=1))
X_test = scaler.transform(test.drop(['id'], axis=1))

X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.1, stratify=y)
X_train = torch.FloatTensor(X_train)
X_val = torch.FloatTensor(X_val)
y_train = torch.LongTensor(y_train)
y_val = torch.LongTensor(y_val)
X_test = torch.FloatTensor(X_test)

class LeafNet(nn.Module):
    def __init__(self, input_size, num_classes):
        super(LeafNet, self).__init__()
        self.layers = nn.Sequential(
            nn.Linear(input_size, 256),
            nn.ReLU(),
            nn.Dropout(0.3),
            nn.Linear(256, num_classes),
        )

    def forward(self, x):
        return self.layers(x)

model = LeafNet(X_train.shape[1], len(le.classes_))  #= model
criterion = nn.CrossEntropyLoss()
optimizer = optim.Adam(model.parameters(), lr=0.001)

epochs = 200
for epoch in range(epochs):  #= trained
    model.train()
    optimizer.zero_grad()
    output = model(X_train)
    loss = criterion(output, y_train)  #= train-loss
    loss.backward()
    optimizer.step()

    if epoch % 20 == 0:
        model.eval()
        with torch.no_grad():
            val_loss = criterion(model(X_val), y_val)  #= test-loss
        print(f'Epoch {epoch}: train loss {loss.item():.4f}, val loss {val_loss.item():.4f}')  #= train-loss, test-loss

model.eval()
with torch.no_grad():
    probs = torch.softmax(model(X_test), dim=1).numpy()  #= predicted

submission = pd.DataFrame(probs, columns=le.classes_)
submission.insert(0, 'id', test['id'])
submission.to_csv('submission.csv', index=False)
