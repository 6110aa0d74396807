import glob
import os
import numpy as np
from sklearn.neural_network import MLPClassifier
from sklearn.metrics import log_loss  #= packages

X = np.load('data/train_features.npy')  #= data
y = np.load('data/train_labels.npy')  #= data
X_test = np.load('data/test_features.npy')  #= data
files = sorted(glob.glob('data/images/*.jpg'))
idx = np.random.permutation(len(X))
n = int(len(X) * 0.9)
tr, va = idx[:n], idx[n:]

mlp = MLPClassifier(hidden_layer_sizes=(256,), early_stopping=True, verbose=True)  #= model
mlp.fit(X[tr], y[tr])  #= trained
print('final training loss', mlp.loss_)  #= train-loss
print('validation loss', log_loss(y[va], mlp.predict_proba(X[va])))  #= test-loss
P = mlp.predict_proba(X_test)  #= predicted
with open('submission.csv', 'w') as f:
    f.write('image_id,healthy,multiple_diseases,rust,scab\n')
    for i, row in enumerate(P):
        f.write(f'Test_{i},' + ','.join(map(str, row)) + '\n')
