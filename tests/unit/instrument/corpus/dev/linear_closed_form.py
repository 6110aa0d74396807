import numpy as np
import pandas as pd  #= packages

train = pd.read_csv('train.csv')  #= data
test = pd.read_csv('test.csv')  #= data
cols = ['formation_energy_ev_natom', 'bandgap_energy_ev']
feat = [c for c in test.columns if c != 'id']
A = np.c_[np.ones(len(train)), train[feat].values]
T = np.c_[np.ones(len(test)), test[feat].values]
Y = np.log1p(train[cols].values)

coef, *_ = np.linalg.lstsq(A, Y, rcond=None)  #= model, trained
residual = A @ coef - Y
print('train rmsle', np.sqrt((residual ** 2).mean(axis=0)))  #= train-loss
pred = np.expm1(T @ coef).clip(0)  #= predicted
out = pd.DataFrame(pred, columns=cols)
out.insert(0, 'id', test['id'])
out.to_csv('submission.csv', index=False)
