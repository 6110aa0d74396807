import pandas as pd
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold  #= packages

df = pd.read_csv('/workdir/us-patent-phrase-to-phrase-matching/prepared/public/train.csv')  #= data
df_t = pd.read_csv('/workdir/us-patent-phrase-to-phrase-matching/prepared/public/test.csv')  #= data

char_vec = TfidfVectorizer(analyzer='char_wb', ngram_range=(2, 4))
char_vec.fit(pd.concat([df['anchor'], df['target']]))

def sim(frame):
    a = char_vec.transform(frame['anchor'])
    b = char_vec.transform(frame['target'])
    return np.asarray(a.multiply(b).sum(axis=1)).ravel()

X = np.column_stack([sim(df), df['anchor'].str.len(), df['target'].str.len()])
X_t = np.column_stack([sim(df_t), df_t['anchor'].str.len(), df_t['target'].str.len()])
y = df['score'].values

oof = np.zeros(len(df))
preds = []
for tr, va in KFold(n_splits=5, shuffle=True, random_state=0).split(X):
    reg = Ridge(alpha=1.0)  #= model
    reg.fit(X[tr], y[tr])  #= trained
    oof[va] = reg.predict(X[va])
    preds.append(reg.predict(X_t))  #= predicted
print('oof pearson:', np.corrcoef(y, oof)[0, 1])  #= test-loss
print('oof mse:', ((y - oof) ** 2).mean())  #= test-loss
df_t['score'] = np.mean(preds, axis=0)
df_t[['id', 'score']].to_csv('submission.csv', index=False)
