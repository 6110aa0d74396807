import numpy as np
import pandas as pd
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegressionCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import LabelEncoder, StandardScaler
from sklearn.metrics import log_loss  #= packages

np.random.seed(2)
train = pd.read_csv('/workdir/leaf-classification/prepared/public/train.csv')  #= data
test = pd.read_csv('/workdir/leaf-classification/prepared/public/test.csv')  #= data
enc = LabelEncoder()
labels = enc.fit_transform(train.pop('species'))
train_ids, test_ids = train.pop('id'), test.pop('id')
std = StandardScaler()
train_x, test_x = std.fit_transform(train), std.transform(test)
X1, X2, y1, y2 = train_test_split(train_x, labels, stratify=labels, test_size=198)

n, best_n, best_loss = 20, None, np.inf
while n <= 100:
    pca = PCA(n).fit(X1)
    knn = KNeighborsClassifier(5, weights='distance')  #= model
    knn.fit(pca.transform(X1), y1)  #= trained
    loss = log_loss(y2, knn.predict_proba(pca.transform(X2)))  #= test-loss
    print('components', n, 'loss', loss)
    if loss < best_loss:
        best_n, best_loss = n, loss
    n += 20

pca = PCA(best_n).fit(train_x)
final = LogisticRegressionCV(Cs=5, cv=3, max_iter=500)  #= model
final.fit(pca.transform(train_x), labels)  #= trained
print('final train loss', log_loss(labels, final.predict_proba(pca.transform(train_x))))  #= train-loss
probs = final.predict_proba(pca.transform(test_x))  #= predicted
frame = pd.DataFrame(probs, index=test_ids, columns=enc.classes_)
frame.to_csv('submission.csv', index_label='id')
