# %% [markdown]
# # LMSYS - baseline
# 1. features 2. model 3. submission

# %%
import pandas as pd
import numpy as np
import json
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.decomposition import TruncatedSVD
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.metrics import log_loss  #= packages

# %%
train = pd.read_csv("/workdir/lmsys-chatbot-arena/prepared/public/train.csv")  #= data
test = pd.read_csv("/workdir/lmsys-chatbot-arena/prepared/public/test.csv")  #= data
train.head()

# %%
def join(cell):
    try:
        return ' '.join(str(x) for x in json.loads(cell))
    except Exception:
        return str(cell)

for col in ['prompt', 'response_a', 'response_b']:
    train[col] = train[col].apply(join)
    test[col] = test[col].apply(join)

# %%
vec = TfidfVectorizer(max_features=30000, sublinear_tf=True)
vec.fit(pd.concat([train['response_a'], train['response_b']]))
svd = TruncatedSVD(64, random_state=1).fit(vec.transform(train['response_a']))
def embed(df):
    a = svd.transform(vec.transform(df['response_a']))
    b = svd.transform(vec.transform(df['response_b']))
    lens = np.log1p(df['response_a'].str.len()) - np.log1p(df['response_b'].str.len())
    return np.hstack([a - b, lens.values[:, None]])
X, X_test = embed(train), embed(test)
y = train[['winner_model_a', 'winner_model_b', 'winner_tie']].values.argmax(1)

# %%
skf = StratifiedKFold(n_splits=4, shuffle=True, random_state=1)
oof = np.zeros((len(X), 3))
test_pred = np.zeros((len(X_test), 3))
for tr, va in skf.split(X, y):
    lr = LogisticRegression(C=0.5, max_iter=500)  #= model
    lr.fit(X[tr], y[tr])  #= trained
    print('train', log_loss(y[tr], lr.predict_proba(X[tr])))  #= train-loss
    oof[va] = lr.predict_proba(X[va])
    test_pred += lr.predict_proba(X_test) / 4  #= predicted

# %%
log_loss(y, oof)  #= test-loss

# %%
sub = pd.read_csv("/workdir/lmsys-chatbot-arena/prepared/public/sample_submission.csv")
sub[['winner_model_a', 'winner_model_b', 'winner_tie']] = test_pred
sub.to_csv('submission.csv', index=False)
