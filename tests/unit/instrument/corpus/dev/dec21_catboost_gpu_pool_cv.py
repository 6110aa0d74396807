import gc
import pandas as pd
import numpy as np
from catboost import CatBoostClassifier, Pool
from sklearn.model_selection import StratifiedKFold
from sklearn.metrics import accuracy_score  #= packages

def reduce_mem(df):
    for c in df.columns:
        if df[c].dtype == 'int64':
            df[c] = pd.to_numeric(df[c], downcast='integer')
    return df

root = '/workdir/tabular-playground-series-dec-2021/prepared/public'
train = reduce_mem(pd.read_csv(f'{root}/train.csv'))  #= data
test = reduce_mem(pd.read_csv(f'{root}/test.csv'))  #= data
train = train.loc[train['Cover_Type'] != 5].reset_index(drop=True)
X, y, T = train.drop(['Id', 'Cover_Type'], axis=1), train['Cover_Type'], test.drop('Id', axis=1)

votes = np.zeros((len(T), 8))
scores = []
for seed, (i, j) in enumerate(StratifiedKFold(3, shuffle=True, random_state=1).split(X, y)):
    pool_i, pool_j = Pool(X.loc[i], y.loc[i]), Pool(X.loc[j], y.loc[j])
    clf = CatBoostClassifier(iterations=800, task_type='GPU', random_seed=seed, verbose=200)  #= model
    clf.fit(pool_i, eval_set=pool_j, early_stopping_rounds=50)  #= trained, train-loss?, test-loss?
    best = clf.get_best_score()  #= test-loss, train-loss?
    print('best', best['learn'], best['validation'])  #= train-loss, test-loss
    acc = accuracy_score(y.loc[j], clf.predict(pool_j).ravel())  #= test-loss
    scores.append(acc)
    print('accuracy', acc)
    for r, c in enumerate(clf.predict(T).ravel().astype(int)):  #= predicted
        votes[r, c] += 1
    del pool_i, pool_j, clf
    gc.collect()
print('mean', np.mean(scores))  #= test-loss
test['Cover_Type'] = votes.argmax(1)  #= predicted
test[['Id', 'Cover_Type']].to_csv('submission.csv', index=False)
