import os
import numpy as np
import pandas as pd
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.metrics import mean_squared_error  #= packages

ROOT = './data'


def read_geometry(folder, idx):
    coords = []
    with open(os.path.join(ROOT, folder, str(idx), 'geometry.xyz')) as fh:
        for line in fh:  #= data
            parts = line.split()
            if parts and parts[0] == 'atom':
                coords.append([float(v) for v in parts[1:4]])
    return np.array(coords)


class EnergyModel:
    def __init__(self, n_estimators=400):
        self.models = {}
        self.n_estimators = n_estimators

    def fit(self, X, Y):
        for col in Y.columns:
            m = ExtraTreesRegressor(n_estimators=self.n_estimators, n_jobs=-1)  #= model
            m.fit(X, np.log1p(Y[col]))  #= trained
            self.models[col] = m
        return self

    def predict(self, X):
        return pd.DataFrame({c: np.expm1(m.predict(X)) for c, m in self.models.items()})


train = pd.read_csv(f'{ROOT}/train.csv')  #= data
test = pd.read_csv(f'{ROOT}/test.csv')  #= data
train['n_atoms_xyz'] = [len(read_geometry('train', i)) for i in train['id']]  #= data
test['n_atoms_xyz'] = [len(read_geometry('test', i)) for i in test['id']]  #= data

cols = ['formation_energy_ev_natom', 'bandgap_energy_ev']
X = train.drop(columns=cols + ['id'])
Y = train[cols]
n_val = int(0.2 * len(train))
X_train, Y_train = X.iloc[n_val:], Y.iloc[n_val:]
X_valid, Y_valid = X.iloc[:n_val], Y.iloc[:n_val]

model = EnergyModel()  #= model
model.fit(X_train, Y_train)  #= trained
train_rmse = np.sqrt(mean_squared_error(Y_train, model.predict(X_train)))  #= train-loss
valid_rmse = np.sqrt(mean_squared_error(Y_valid, model.predict(X_valid)))  #= test-loss
print("train {:.4f} valid {:.4f}".format(train_rmse, valid_rmse))

pred = model.predict(test.drop(columns=['id']))  #= predicted
pred.insert(0, 'id', test['id'].values)
pred.to_csv('submission.csv', index=False)
