import pandas as pd
import numpy as np
import xgboost as xgb
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score  #= packages

train = pd.read_csv('/workdir/tabular-playground-series-dec-2021/prepared/public/train.csv')  #= data
test = pd.read_csv('/workdir/tabular-playground-series-dec-2021/prepared/public/test.csv')  #= data

train = train[train['Cover_Type'] != 5]
y = train['Cover_Type'].values
classes = np.unique(y)
y_enc = np.searchsorted(classes, y)
X = train.drop(columns=['Id', 'Cover_Type', 'Soil_Type7', 'Soil_Type15'])
X_test = test[X.columns]

X_tr, X_val, y_tr, y_val = train_test_split(X, y_enc, test_size=0.1, random_state=99)
dtrain = xgb.DMatrix(X_tr, label=y_tr)
dval = xgb.DMatrix(X_val, label=y_val)
dtest = xgb.DMatrix(X_test)

params = {
    'objective': 'multi:softprob',
    'num_class': len(classes),
    'eval_metric': 'mlogloss',
    'tree_method': 'hist',
    'eta': 0.2,
    'max_depth': 8,
}
evals_result = {}
bst = xgb.train(params, dtrain, num_boost_round=300, evals=[(dtrain, 'train'), (dval, 'val')],
                early_stopping_rounds=20, evals_result=evals_result, verbose_eval=50)  #= model, trained, train-loss?, test-loss?
print('Final train loss:', evals_result['train']['mlogloss'][-1])  #= train-loss
print('Final val loss:', evals_result['val']['mlogloss'][-1])  #= test-loss
val_acc = accuracy_score(y_val, bst.predict(dval).argmax(axis=1))  #= test-loss
print('Val accuracy:', val_acc)

pred = classes[bst.predict(dtest).argmax(axis=1)]  #= predicted
pd.DataFrame({'Id': test['Id'], 'Cover_Type': pred}).to_csv('submission.csv', index=False)
