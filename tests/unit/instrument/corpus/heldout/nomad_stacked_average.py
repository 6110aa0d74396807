import numpy as np
import pandas as pd
import xgboost as xgb
import lightgbm as lgb
from catboost import CatBoostRegressor
from sklearn.model_selection import train_test_split  #= packages

train = pd.read_csv('/workdir/nomad2018-predict-transparent-conductors/prepared/public/train.csv')  #= data
test = pd.read_csv('/workdir/nomad2018-predict-transparent-conductors/prepared/public/test.csv')  #= data

def rmsle(y_true, y_pred):
    return np.sqrt(np.mean(np.power(np.log1p(y_pred) - np.log1p(y_true), 2)))

X = train.drop(columns=['id', 'formation_energy_ev_natom', 'bandgap_energy_ev'])
X_test = test.drop(columns=['id'])

def fit_predict(target):
    y = np.log1p(train[target])
    X_tr, X_va, y_tr, y_va = train_test_split(X, y, test_size=0.2, random_state=123)
    models = [  #= model
        xgb.XGBRegressor(n_estimators=300, max_depth=5, learning_rate=0.05),
        lgb.LGBMRegressor(n_estimators=300, learning_rate=0.05),
        CatBoostRegressor(iterations=500, depth=6, verbose=0),
    ]
    tr_preds, va_preds, te_preds = [], [], []
    for model in models:
        model.fit(X_tr, y_tr)  #= trained
        tr_preds.append(model.predict(X_tr))
        va_preds.append(model.predict(X_va))
        te_preds.append(model.predict(X_test))  #= predicted
    train_score = rmsle(np.expm1(y_tr), np.expm1(np.mean(tr_preds, axis=0)))  #= train-loss
    valid_score = rmsle(np.expm1(y_va), np.expm1(np.mean(va_preds, axis=0)))  #= test-loss
    print(f'{target}: train RMSLE {train_score:.5f}, valid RMSLE {valid_score:.5f}')
    return np.expm1(np.mean(te_preds, axis=0)), valid_score

formation, s1 = fit_predict('formation_energy_ev_natom')  #= model, trained, train-loss, test-loss, predicted
bandgap, s2 = fit_predict('bandgap_energy_ev')  #= model, trained, train-loss, test-loss, predicted
print('Mean score:', (s1 + s2) / 2)  #= test-loss

pd.DataFrame({
    'id': test['id'],
    'formation_energy_ev_natom': formation.clip(0),
    'bandgap_energy_ev': bandgap.clip(0),
}).to_csv('submission.csv', index=False)
