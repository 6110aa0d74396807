import numpy as np
import pandas as pd
from PIL import Image
from sklearn.linear_model import LogisticRegression
from sklearn.decomposition import PCA
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold  #= packages

DIR = '/workdir/plant-pathology-2020-fgvc7/prepared/public/'
train = pd.read_csv(DIR + 'train.csv')  #= data
test = pd.read_csv(DIR + 'test.csv')  #= data

def pixels(ids, size=(64, 64)):
    out = np.zeros((len(ids), size[0] * size[1] * 3), dtype=np.float32)
    for i, name in enumerate(ids):
        with Image.open(f'{DIR}images/{name}.jpg') as im:  #= data
            out[i] = np.asarray(im.resize(size)).ravel() / 255  #= data
    return out

X, X_sub = pixels(train['image_id']), pixels(test['image_id'])  #= data
pca = PCA(50).fit(X)
X, X_sub = pca.transform(X), pca.transform(X_sub)

sub = test[['image_id']].copy()
aucs = []
for label in ['healthy', 'multiple_diseases', 'rust', 'scab']:
    y = train[label].values
    oof = np.zeros(len(y))
    pred = np.zeros(len(X_sub))
    for tr, va in KFold(5, shuffle=True, random_state=0).split(X):
        lr = LogisticRegression(max_iter=500)  #= model
        lr.fit(X[tr], y[tr])  #= trained
        oof[va] = lr.predict_proba(X[va])[:, 1]
        pred += lr.predict_proba(X_sub)[:, 1] / 5  #= predicted
    aucs.append(roc_auc_score(y, oof))  #= test-loss
    sub[label] = pred
print('mean column auc', np.mean(aucs))
sub.to_csv('submission.csv', index=False)
