import numpy as np
import pandas as pd
from sklearn.linear_model import SGDClassifier
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split  #= packages

train = pd.read_csv('train.csv')  #= data
test = pd.read_csv('test.csv')  #= data
hv = HashingVectorizer(n_features=2**16, alternate_sign=False)
X = hv.transform(train['text'])
X_sub = hv.transform(test['text'])
y = train['author'].values
X_tr, X_va, y_tr, y_va = train_test_split(X, y, test_size=0.15, stratify=y)

classes = np.unique(y)
sgd = SGDClassifier(loss='log_loss', learning_rate='constant', eta0=0.1)  #= model
batch = 512
for epoch in range(10):  #= trained
    order = np.random.permutation(X_tr.shape[0])
    for start in range(0, len(order), batch):
        ids = order[start:start + batch]
        sgd.partial_fit(X_tr[ids], y_tr[ids], classes=classes)  #= trained
    tl = log_loss(y_tr, sgd.predict_proba(X_tr))  #= train-loss
    vl = log_loss(y_va, sgd.predict_proba(X_va))  #= test-loss
    print('epoch %d train %.4f val %.4f' % (epoch, tl, vl))

sub = pd.DataFrame(sgd.predict_proba(X_sub), columns=classes)  #= predicted
sub.insert(0, 'id', test['id'])
sub.to_csv('submission.csv', index=False)
