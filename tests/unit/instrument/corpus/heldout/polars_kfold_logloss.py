import polars as pl
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.metrics import log_loss  #= packages

path = '/workdir/spooky-author-identification/prepared/public'
df = pl.read_csv(f'{path}/train.csv')  #= data
df_test = pl.read_csv(f'{path}/test.csv')  #= data
texts = df['text'].to_list()
labels = np.array(df['author'].to_list())
vec = TfidfVectorizer(analyzer='char', ngram_range=(2, 5), min_df=3)
X = vec.fit_transform(texts)
T = vec.transform(df_test['text'].to_list())

scores = {'train': [], 'valid': []}
P = np.zeros((T.shape[0], 3))
for i, j in StratifiedKFold(5, shuffle=True, random_state=0).split(X, labels):
    clf = LogisticRegression(C=30, max_iter=400)  #= model
    clf.fit(X[i], labels[i])  #= trained
    scores['train'].append(log_loss(labels[i], clf.predict_proba(X[i])))  #= train-loss
    scores['valid'].append(log_loss(labels[j], clf.predict_proba(X[j])))  #= test-loss
    P += clf.predict_proba(T) / 5  #= predicted
for k, v in scores.items():
    print(k, np.mean(v))
pl.DataFrame({'id': df_test['id'], **{c: P[:, n] for n, c in enumerate(clf.classes_)}}).write_csv('submission.csv')
