import glob
from pathlib import Path
import cv2
import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.multioutput import MultiOutputClassifier  #= packages

root = Path('/workdir/plant-pathology-2020-fgvc7/prepared/public')
train = pd.read_csv(root / 'train.csv')  #= data
test = pd.read_csv(root / 'test.csv')  #= data
targets = ['healthy', 'multiple_diseases', 'rust', 'scab']

def load(image_id):
    img = cv2.imread(str(root / 'images' / f'{image_id}.jpg'))  #= data
    img = cv2.resize(img, (32, 32))
    hist = [np.histogram(img[:, :, c], bins=16)[0] for c in range(3)]
    return np.concatenate(hist)

X = np.stack([load(i) for i in train.image_id])  #= data
X_test = np.stack([load(i) for i in test.image_id])  #= data
Y = train[targets].values

rf = MultiOutputClassifier(RandomForestClassifier(n_estimators=200))  #= model
rf.fit(X, Y)  #= trained
probs = rf.predict_proba(X_test)  #= predicted
sub = test[['image_id']].copy()
for k, t in enumerate(targets):
    sub[t] = probs[k][:, 1]
sub.to_csv('submission.csv', index=False)
