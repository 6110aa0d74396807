import numpy as np
import pandas as pd
import xgboost as xgb  #= packages

train = pd.read_csv('train.csv')  #= data
test = pd.read_csv('test.csv')  #= data
y1 = np.log1p(train['formation_energy_ev_natom'])
y2 = np.log1p(train['bandgap_energy_ev'])
train.drop(['id', 'formation_energy_ev_natom', 'bandgap_energy_ev'], axis=1, inplace=True)
ids = test.pop('id')

params = {'eta': 0.05, 'max_depth': 5, 'objective': 'reg:squarederror', 'subsample': 0.8}
dtest = xgb.DMatrix(test)
preds = []
for name, y in (('formation', y1), ('bandgap', y2)):
    dtrain = xgb.DMatrix(train, label=y)
    cv = xgb.cv(params, dtrain, num_boost_round=1000, nfold=5, early_stopping_rounds=30, metrics='rmse')  #= test-loss?, train-loss?, trained?, model?
    n_rounds = len(cv)
    print(name, 'cv rmse', cv['test-rmse-mean'].iloc[-1])  #= test-loss
    print(name, 'train rmse', cv['train-rmse-mean'].iloc[-1])  #= train-loss
    booster = xgb.train(params, dtrain, n_rounds)  #= model, trained
    preds.append(np.expm1(booster.predict(dtest)))  #= predicted

sub = pd.DataFrame({'id': ids, 'formation_energy_ev_natom': preds[0], 'bandgap_energy_ev': preds[1]})
sub['formation_energy_ev_natom'] = sub['formation_energy_ev_natom'].clip(lower=0)
sub.to_csv('submission.csv', index=False)
