import lightgbm as lgb
import pandas as pd
import numpy as np  #= packages

train = pd.read_parquet('train.parquet')  #= data
test = pd.read_parquet('test.parquet')  #= data
X, y = train.drop(['id', 'target'], axis=1), train['target']
data = lgb.Dataset(X, y)
params = {'objective': 'binary', 'metric': 'auc', 'learning_rate': 0.05}
cv_results = lgb.cv(params, data, num_boost_round=500, nfold=5, stratified=True, callbacks=[lgb.early_stopping(50)])  #= test-loss?, trained?, model?
best_rounds = len(cv_results['valid auc-mean'])
print('CV AUC:', cv_results['valid auc-mean'][-1])  #= test-loss
bst = lgb.train(params, data, num_boost_round=best_rounds)  #= model, trained
pred = bst.predict(test.drop('id', axis=1))  #= predicted
pd.DataFrame({'id': test['id'], 'target': pred}).to_csv('submission.csv', index=False)
