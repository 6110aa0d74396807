import argparse
import os
import numpy as np
import pandas as pd
import torch
import torch.nn as nn
from PIL import Image
from sklearn.preprocessing import LabelEncoder  #= packages


def load_images(ids, folder, size):
    out = np.zeros((len(ids), 1, size, size), dtype=np.float32)
    for k, i in enumerate(ids):
        img = Image.open(os.path.join(folder, f'{i}.jpg')).convert('L').resize((size, size))  #= data
        out[k, 0] = np.asarray(img) / 255.0
    return torch.from_numpy(out)


def build_net(n_classes):
    return nn.Sequential(  #= model
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4),
        nn.Flatten(), nn.Linear(512, n_classes),
    )


def main(args):
    train = pd.read_csv(os.path.join(args.data, 'train.csv'))  #= data
    test = pd.read_csv(os.path.join(args.data, 'test.csv'))  #= data
    le = LabelEncoder()
    y = torch.tensor(le.fit_transform(train['species']))
    X = load_images(train['id'], os.path.join(args.data, 'images'), args.size)  #= data
    X_test = load_images(test['id'], os.path.join(args.data, 'images'), args.size)  #= data
    mask = torch.rand(len(X)) < 0.85
    X_tr, y_tr, X_va, y_va = X[mask], y[mask], X[~mask], y[~mask]

    net = build_net(len(le.classes_))  #= model
    optimizer = torch.optim.SGD(net.parameters(), lr=args.lr, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10, 0.5)
    loss_fn = nn.CrossEntropyLoss()
    best_val = float('inf')
    for epoch in range(args.epochs):  #= trained
        net.train()
        order = torch.randperm(len(X_tr))
        running = 0.0
        for b in range(0, len(order), args.batch):  #= trained?
            rows = order[b:b + args.batch]
            loss = loss_fn(net(X_tr[rows]), y_tr[rows])  #= train-loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item() * len(rows)
        scheduler.step()
        net.eval()
        with torch.no_grad():
            val_loss = loss_fn(net(X_va), y_va).item()  #= test-loss
        print('epoch %d train %.4f val %.4f' % (epoch, running / len(X_tr), val_loss))  #= train-loss, test-loss
        if val_loss < best_val:
            best_val = val_loss
            best_state = {k: v.clone() for k, v in net.state_dict().items()}
    net.load_state_dict(best_state)
    with torch.no_grad():
        proba = net(X_test).softmax(dim=1).numpy()  #= predicted
    sub = pd.DataFrame(proba, columns=le.classes_)
    sub.insert(0, 'id', test['id'])
    sub.to_csv('submission.csv', index=False)


if __name__ == '__main__':
    p = argparse.ArgumentParser()
    p.add_argument('--data', default='/workdir/leaf-classification/prepared/public')
    p.add_argument('--size', type=int, default=64)
    p.add_argument('--lr', type=float, default=0.01)
    p.add_argument('--batch', type=int, default=32)
    p.add_argument('--epochs', type=int, default=30)
    main(p.parse_args())  #= data?, model?, trained?, train-loss?, test-loss?, predicted?
