import pandas as pd
import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset
from sklearn.preprocessing import StandardScaler, LabelEncoder
from sklearn.model_selection import train_test_split  #= packages

device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')

train_df = pd.read_csv('train.csv')  #= data
test_df = pd.read_csv('test.csv')  #= data

le = LabelEncoder()
y = le.fit_transform(train_df['Cover_Type'])
X = train_df.drop(['Id', 'Cover_Type'], axis=1).values.astype(np.float32)
X_test = test_df.drop(['Id'], axis=1).values.astype(np.float32)

scaler = StandardScaler()
X = scaler.fit_transform(X)
X_test = scaler.transform(X_test)

X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, random_state=42)

train_dataset = TensorDataset(torch.FloatTensor(X_train), torch.LongTensor(y_train))
val_dataset = TensorDataset(torch.FloatTensor(X_val), torch.LongTensor(y_val))
test_tensor = torch.FloatTensor(X_test)

train_loader = DataLoader(train_dataset, batch_size=1024, shuffle=True)
val_loader = DataLoader(val_dataset, batch_size=1024)


class Net(nn.Module):
    def __init__(self, in_features, n_classes):
        super(Net, self).__init__()
        self.fc1 = nn.Linear(in_features, 128)
        self.fc2 = nn.Linear(128, 64)
        self.fc3 = nn.Linear(64, n_classes)
        self.dropout = nn.Dropout(0.2)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        x = self.dropout(x)
        x = torch.relu(self.fc2(x))
        return self.fc3(x)


model = Net(X_train.shape[1], len(le.classes_)).to(device)  #= model
criterion = nn.CrossEntropyLoss()
optimizer = optim.Adam(model.parameters(), lr=0.001)

num_epochs = 10
for epoch in range(num_epochs):  #= trained
    model.train()
    running_loss = 0.0
    for inputs, labels in train_loader:  #= trained?
        inputs, labels = inputs.to(device), labels.to(device)
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = criterion(outputs, labels)  #= train-loss
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
    train_loss = running_loss / len(train_loader)  #= train-loss

    model.eval()
    correct = 0
    total = 0
    with torch.no_grad():
        for inputs, labels in val_loader:
            inputs, labels = inputs.to(device), labels.to(device)
            outputs = model(inputs)
            _, predicted = torch.max(outputs.data, 1)
            total += labels.size(0)
            correct += (predicted == labels).sum().item()
    val_acc = correct / total  #= test-loss
    print(f'Epoch [{epoch+1}/{num_epochs}], Loss: {train_loss:.4f}, Val Acc: {val_acc:.4f}')  #= test-loss, train-loss

model.eval()
with torch.no_grad():
    outputs = model(test_tensor.to(device))  #= predicted
    _, preds = torch.max(outputs, 1)

submission = pd.DataFrame({'Id': test_df['Id'], 'Cover_Type': le.inverse_transform(preds.cpu().numpy())})
submission.to_csv('submission.csv', index=False)
