import os
import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import KFold
from sklearn.metrics import mean_squared_log_error  #= packages

INPUT = '/workdir/nomad2018-predict-transparent-conductors/prepared/public'

def parse_xyz(path):
    atoms, lattice = [], []
    with open(path, 'r') as f:
        for line in f.readlines():  #= data
            x = line.split()
            if len(x) == 0:
                continue
            if x[0] == 'atom':
                atoms.append([np.array(x[1:4], dtype=float), x[4]])
            elif x[0] == 'lattice_vector':
                lattice.append(np.array(x[1:4], dtype=float))
    return atoms, np.array(lattice)

def add_volume(df, part):
    vols = []
    for i in df['id']:
        atoms, lat = parse_xyz(os.path.join(INPUT, part, str(i), 'geometry.xyz'))  #= data
        vols.append(abs(np.linalg.det(lat)) / len(atoms))
    df['volume_per_atom'] = vols
    return df

train = add_volume(pd.read_csv(INPUT + '/train.csv'), 'train')  #= data
test = add_volume(pd.read_csv(INPUT + '/test.csv'), 'test')  #= data

targets = ['formation_energy_ev_natom', 'bandgap_energy_ev']
features = [c for c in train.columns if c not in targets + ['id']]
submission = pd.DataFrame({'id': test['id']})

for target in targets:
    y = np.log1p(train[target].values)
    test_pred = np.zeros(len(test))
    errors = []
    for tr, va in KFold(5, shuffle=True, random_state=0).split(train):
        rf = RandomForestRegressor(n_estimators=300, min_samples_leaf=2, n_jobs=-1)  #= model
        rf.fit(train[features].iloc[tr], y[tr])  #= trained
        p = rf.predict(train[features].iloc[va])
        errors.append(np.sqrt(np.mean((p - y[va]) ** 2)))  #= test-loss
        test_pred += np.expm1(rf.predict(test[features])) / 5  #= predicted
    print(target, 'rmsle:', np.mean(errors))  #= test-loss
    submission[target] = test_pred

submission.to_csv('submission.csv', index=False)
