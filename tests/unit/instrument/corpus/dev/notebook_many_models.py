# %%
import pandas as pd
import numpy as np
from sklearn.linear_model import LinearRegression, Ridge, Lasso, ElasticNet
from sklearn.svm import SVR
from sklearn.ensemble import RandomForestRegressor, BaggingRegressor
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.metrics import mean_squared_error, r2_score  #= packages

# %%
train = pd.read_csv('train.csv')  #= data
test = pd.read_csv('test.csv')  #= data
train.shape, test.shape

# %%
X = train.drop(['id', 'formation_energy_ev_natom', 'bandgap_energy_ev'], axis=1)
y = train['bandgap_energy_ev']
y2 = train['formation_energy_ev_natom']

# %%
results = []
for name, reg in [('lin', LinearRegression()), ('ridge', Ridge(1.0)), ('lasso', Lasso(0.01)), ('svr', SVR())]:  #= model
    s = -cross_val_score(reg, X, y, cv=5, scoring='neg_root_mean_squared_error')  #= test-loss, trained?
    results.append((name, s.mean()))
pd.DataFrame(results, columns=['model', 'rmse']).sort_values('rmse')

# %%
X_tr, X_te, y_tr, y_te = train_test_split(X, y, test_size=0.2, random_state=0)
rf = RandomForestRegressor(n_estimators=300, oob_score=True)  #= model
rf.fit(X_tr, y_tr)  #= trained
rf.score(X_tr, y_tr), rf.score(X_te, y_te)  #= train-loss, test-loss

# %%
rf2 = RandomForestRegressor(n_estimators=300).fit(X, y2)  #= model, trained
sub = pd.DataFrame({'id': test['id']})
sub['formation_energy_ev_natom'] = rf2.predict(test.drop('id', axis=1))  #= predicted
sub['bandgap_energy_ev'] = rf.predict(test.drop('id', axis=1))  #= predicted
sub.to_csv('submission.csv', index=False)
