import pandas as pd
import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold  #= packages

path = '/workdir/lmsys-chatbot-arena/prepared/public/'
df_train = pd.read_csv(path + 'train.csv')  #= data
df_test = pd.read_csv(path + 'test.csv')  #= data
labels = np.select([df_train.winner_model_a == 1, df_train.winner_model_b == 1], [0, 1], default=2)

vec = TfidfVectorizer(min_df=5, max_features=50000)
vec.fit(df_train['response_a'].astype(str))
def diff(df):
    A = vec.transform(df['response_a'].astype(str))
    B = vec.transform(df['response_b'].astype(str))
    return sp.csr_matrix(A - B)

X = diff(df_train)
X_sub = diff(df_test)

logs = []
test_pred = 0
for k, (i_tr, i_va) in enumerate(GroupKFold(n_splits=4).split(X, labels, groups=df_train['prompt'])):
    sgd = SGDClassifier(loss='log_loss', alpha=1e-4, max_iter=30, random_state=k)  #= model
    sgd.fit(X[i_tr], labels[i_tr])  #= trained
    va = sgd.predict_proba(X[i_va])
    logs.append(log_loss(labels[i_va], va))  #= test-loss
    test_pred = test_pred + sgd.predict_proba(X_sub) / 4  #= predicted
print('cv logloss: {:.5f}'.format(np.mean(logs)))

cols = ['winner_model_a', 'winner_model_b', 'winner_tie']
df_sub = pd.concat([df_test[['id']], pd.DataFrame(test_pred, columns=cols)], axis=1)
df_sub.to_csv('submission.csv', index=False)
