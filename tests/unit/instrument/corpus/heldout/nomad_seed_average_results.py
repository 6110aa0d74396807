import pandas as pd
import numpy as np
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.model_selection import RepeatedKFold
from sklearn.multioutput import MultiOutputRegressor
import lightgbm as lgb  #= packages

train = pd.read_csv('/workdir/nomad2018-predict-transparent-conductors/prepared/public/train.csv')  #= data
test = pd.read_csv('/workdir/nomad2018-predict-transparent-conductors/prepared/public/test.csv')  #= data
cols_y = ['formation_energy_ev_natom', 'bandgap_energy_ev']
cols_x = [c for c in test.columns if c != 'id']
X, Y, X_test = train[cols_x].values, np.log1p(train[cols_y].values), test[cols_x].values

results = []
test_pred = []
for seed in range(3):
    rkf = RepeatedKFold(n_splits=4, n_repeats=1, random_state=seed)
    for fold, (tr, te) in enumerate(rkf.split(X)):
        m = MultiOutputRegressor(lgb.LGBMRegressor(n_estimators=200, random_state=seed, verbose=-1))  #= model
        m.fit(X[tr], Y[tr])  #= trained
        rmse_tr = np.sqrt(((m.predict(X[tr]) - Y[tr]) ** 2).mean())  #= train-loss
        rmse_te = np.sqrt(((m.predict(X[te]) - Y[te]) ** 2).mean())  #= test-loss
        results.append({'seed': seed, 'fold': fold, 'train': rmse_tr, 'test': rmse_te})
        test_pred.append(m.predict(X_test))  #= predicted

print(pd.DataFrame(results).groupby('seed')[['train', 'test']].mean())  #= train-loss?, test-loss?
final = np.expm1(np.mean(test_pred, axis=0)).clip(0)  #= predicted
out = pd.DataFrame(final, columns=cols_y)
out.insert(0, 'id', test['id'])
out.to_csv('submission.csv', index=False)
