import warnings; warnings.simplefilter('ignore')
import pandas as pd, numpy as np
from catboost import CatBoostRegressor
from sklearn.model_selection import KFold
from sklearn.metrics import mean_squared_error  #= packages

def rmsle(y, p):
    return np.sqrt(mean_squared_error(np.log1p(y), np.log1p(np.maximum(p, 0))))

train = pd.read_csv('/workdir/nomad2018-predict-transparent-conductors/prepared/public/train.csv')  #= data
test = pd.read_csv('/workdir/nomad2018-predict-transparent-conductors/prepared/public/test.csv')  #= data
TARGETS = ['formation_energy_ev_natom', 'bandgap_energy_ev']
X = train.drop(['id'] + TARGETS, axis=1)
X['spacegroup'] = X['spacegroup'].astype('category')
test_X = test.drop('id', axis=1)
test_X['spacegroup'] = test_X['spacegroup'].astype('category')

oof = pd.DataFrame(0.0, index=train.index, columns=TARGETS)
pred = pd.DataFrame(0.0, index=test.index, columns=TARGETS)
kf = KFold(n_splits=5, shuffle=True, random_state=2018)
for t in TARGETS:
    for i, (tr, va) in enumerate(kf.split(X)):
        reg = CatBoostRegressor(iterations=1500, learning_rate=0.03, loss_function='RMSE', cat_features=['spacegroup'], silent=True)  #= model
        reg.fit(X.iloc[tr], np.log1p(train[t].iloc[tr]), eval_set=(X.iloc[va], np.log1p(train[t].iloc[va])), early_stopping_rounds=100)  #= trained, test-loss?
        oof.loc[va, t] = np.expm1(reg.predict(X.iloc[va]))
        pred[t] += np.expm1(reg.predict(test_X)) / kf.n_splits  #= predicted
        print(t, i, 'train', rmsle(train[t].iloc[tr], np.expm1(reg.predict(X.iloc[tr]))))  #= train-loss
    print(t, 'oof', rmsle(train[t], oof[t]))  #= test-loss

pred.insert(0, 'id', test['id'])
pred.to_csv('submission.csv', index=False)
