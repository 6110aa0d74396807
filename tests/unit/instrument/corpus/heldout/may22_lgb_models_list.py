import gc
import numpy as np
import pandas as pd
import lightgbm as lgb
from sklearn.model_selection import KFold
from sklearn.metrics import roc_auc_score  #= packages

def read():
    d = '/workdir/tabular-playground-series-may-2022/prepared/public'
    tr = pd.read_csv(d + '/train.csv', index_col='id')  #= data
    te = pd.read_csv(d + '/test.csv', index_col='id')  #= data
    return tr, te

tr, te = read()  #= data
for df in (tr, te):
    for i in range(10):
        df['c%d' % i] = df.f_27.str[i].map(ord) - 65
    df['i_02_21'] = (df.f_21 + df.f_02 > 5.2).astype(int) - (df.f_21 + df.f_02 < -5.3).astype(int)
    df.drop('f_27', axis=1, inplace=True)

features = list(te.columns)
params = dict(objective='binary', metric='auc', learning_rate=0.05, num_leaves=100, verbosity=-1)
boosters = []
aucs = []
for k, (a, b) in enumerate(KFold(5, shuffle=True, random_state=1).split(tr)):
    d_a = lgb.Dataset(tr.iloc[a][features], tr.iloc[a].target)
    d_b = lgb.Dataset(tr.iloc[b][features], tr.iloc[b].target)
    bst = lgb.train(params, d_a, 3000, valid_sets=[d_b], callbacks=[lgb.early_stopping(100), lgb.log_evaluation(500)])  #= model, trained, test-loss?
    aucs.append(roc_auc_score(tr.iloc[b].target, bst.predict(tr.iloc[b][features])))  #= test-loss
    print('fold', k, 'auc', aucs[-1])  #= test-loss
    boosters.append(bst)
    del d_a, d_b
    gc.collect()

print('mean auc', np.mean(aucs))  #= test-loss
pred = np.mean([b.predict(te[features]) for b in boosters], axis=0)  #= predicted
pd.DataFrame({'id': te.index, 'target': pred}).to_csv('submission.csv', index=False)
