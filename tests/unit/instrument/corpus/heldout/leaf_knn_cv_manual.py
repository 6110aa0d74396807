import pandas as pd
import numpy as np
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import MinMaxScaler
from sklearn.model_selection import StratifiedKFold
from sklearn import metrics  #= packages

df = pd.read_csv('/workdir/leaf-classification/prepared/public/train.csv')  #= data
df_sub = pd.read_csv('/workdir/leaf-classification/prepared/public/test.csv')  #= data

species = sorted(df.species.unique())
sp2id = {s: i for i, s in enumerate(species)}
y = df.species.map(sp2id).to_numpy()
mm = MinMaxScaler()
X = mm.fit_transform(df.iloc[:, 2:])
X_sub = mm.transform(df_sub.iloc[:, 1:])

best_k, best_loss = 1, float('inf')
for k in (1, 3, 5, 7, 9, 11):
    fold_losses = []
    for tr, va in StratifiedKFold(5).split(X, y):
        knn = KNeighborsClassifier(n_neighbors=k, weights='distance')  #= model
        knn.fit(X[tr], y[tr])  #= trained
        proba = knn.predict_proba(X[va])
        fold_losses.append(metrics.log_loss(y[va], proba, labels=list(range(len(species)))))  #= test-loss
    avg = sum(fold_losses) / len(fold_losses)
    print(k, avg)  #= test-loss
    if avg < best_loss:
        best_k, best_loss = k, avg

print('Using k =', best_k)
knn = KNeighborsClassifier(n_neighbors=best_k, weights='distance').fit(X, y)  #= model, trained
p = knn.predict_proba(X_sub)  #= predicted
p = np.clip(p, 1e-6, 1)
p /= p.sum(axis=1, keepdims=True)
out = pd.DataFrame(p, columns=species)
out.insert(0, 'id', df_sub.id)
out.to_csv('submission.csv', index=False)
