import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.model_selection import train_test_split
from sklearn.metrics import mean_squared_log_error  #= packages

train = pd.read_csv('/workdir/nomad2018-predict-transparent-conductors/prepared/public/train.csv')  #= data
test = pd.read_csv('/workdir/nomad2018-predict-transparent-conductors/prepared/public/test.csv')  #= data

targets = ['formation_energy_ev_natom', 'bandgap_energy_ev']
features = [c for c in train.columns if c not in targets + ['id']]

submission = pd.DataFrame({'id': test['id']})
total = []
for target in targets:
    y = np.log1p(train[target])
    X_tr, X_val, y_tr, y_val = train_test_split(train[features], y, test_size=0.2, random_state=0)
    model = GradientBoostingRegressor(n_estimators=300, learning_rate=0.05, max_depth=4)  #= model
    model.fit(X_tr, y_tr)  #= trained
    rmsle = np.sqrt(np.mean((model.predict(X_val) - y_val) ** 2))  #= test-loss
    total.append(rmsle)
    print(target, 'RMSLE', rmsle)
    submission[target] = np.expm1(model.predict(test[features]))  #= predicted

print('Mean RMSLE', np.mean(total))
submission.to_csv('submission.csv', index=False)
