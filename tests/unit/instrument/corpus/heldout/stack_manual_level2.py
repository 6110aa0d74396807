import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB, BernoulliNB
from sklearn.model_selection import StratifiedKFold
from sklearn.metrics import log_loss  #= packages

train = pd.read_csv('/workdir/spooky-author-identification/prepared/public/train.csv')  #= data
test = pd.read_csv('/workdir/spooky-author-identification/prepared/public/test.csv')  #= data
authors = ['EAP', 'HPL', 'MWS']
y = train['author'].map({a: i for i, a in enumerate(authors)}).values
vec = TfidfVectorizer(ngram_range=(1, 2), min_df=2)
X = vec.fit_transform(train['text'])
X_test = vec.transform(test['text'])

def get_oof(clf, X, y, X_test):
    oof_train = np.zeros((X.shape[0], 3))
    oof_test = np.zeros((5, X_test.shape[0], 3))
    skf = StratifiedKFold(n_splits=5, shuffle=True, random_state=0)
    for i, (tr, va) in enumerate(skf.split(X, y)):
        clf.fit(X[tr], y[tr])  #= trained
        oof_train[va] = clf.predict_proba(X[va])
        oof_test[i] = clf.predict_proba(X_test)  #= predicted
    return oof_train, oof_test.mean(axis=0)

base_models = [MultinomialNB(alpha=0.05), BernoulliNB(alpha=0.05), LogisticRegression(C=20, max_iter=500)]  #= model
level1_train, level1_test = [], []
for clf in base_models:
    a, b = get_oof(clf, X, y, X_test)  #= trained, predicted
    print(type(clf).__name__, log_loss(y, a))  #= test-loss
    level1_train.append(a)
    level1_test.append(b)

S_train = np.hstack(level1_train)
S_test = np.hstack(level1_test)
meta = LogisticRegression()  #= model
meta.fit(S_train, y)  #= trained
print('stack train loss', log_loss(y, meta.predict_proba(S_train)))  #= train-loss?, test-loss?
final = meta.predict_proba(S_test)  #= predicted
pd.DataFrame(np.c_[test['id'].values, final], columns=['id'] + authors).to_csv('submission.csv', index=False)
