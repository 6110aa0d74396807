import pandas as pd
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.linear_model import LinearRegression
from sklearn.metrics import mean_squared_error
from scipy.stats import pearsonr  #= packages

train = pd.read_csv('/workdir/us-patent-phrase-to-phrase-matching/prepared/public/train.csv')  #= data
test = pd.read_csv('/workdir/us-patent-phrase-to-phrase-matching/prepared/public/test.csv')  #= data

vectorizer = TfidfVectorizer(analyzer='char_wb', ngram_range=(2, 4))
vectorizer.fit(pd.concat([train['anchor'], train['target'], test['anchor'], test['target']]))

def similarity(df):
    a = vectorizer.transform(df['anchor'])
    b = vectorizer.transform(df['target'])
    return np.array([cosine_similarity(a[i], b[i])[0, 0] for i in range(a.shape[0])])

train['sim'] = similarity(train)
test['sim'] = similarity(test)

split = int(0.8 * len(train))
X_train, y_train = train[['sim']][:split], train['score'][:split]
X_val, y_val = train[['sim']][split:], train['score'][split:]

reg = LinearRegression()  #= model
reg.fit(X_train, y_train)  #= trained
print("Train loss:", mean_squared_error(y_train, reg.predict(X_train)))  #= train-loss
val_pred = reg.predict(X_val)
print("Val loss:", mean_squared_error(y_val, val_pred))  #= test-loss
print("Val pearson:", pearsonr(y_val, val_pred)[0])  #= test-loss

test['score'] = np.clip(reg.predict(test[['sim']]), 0, 1)  #= predicted
test[['id', 'score']].to_csv('submission.csv', index=False)
