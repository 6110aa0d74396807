import pandas as pd
import numpy as np
from sklearn.ensemble import VotingRegressor, RandomForestRegressor, GradientBoostingRegressor
from sklearn.linear_model import Lasso
from sklearn.multioutput import MultiOutputRegressor
from sklearn.model_selection import cross_val_score, KFold
from sklearn.metrics import make_scorer, mean_squared_log_error  #= packages

train_data = pd.read_csv('/workdir/nomad2018-predict-transparent-conductors/prepared/public/train.csv')  #= data
test_data = pd.read_csv('/workdir/nomad2018-predict-transparent-conductors/prepared/public/test.csv')  #= data

def rmsle(y_true, y_pred):
    return np.sqrt(mean_squared_log_error(y_true, np.clip(y_pred, 0, None)))

targets = ['formation_energy_ev_natom', 'bandgap_energy_ev']
X = train_data.drop(columns=targets + ['id'])
y = train_data[targets]
ensemble = VotingRegressor([('rf', RandomForestRegressor()), ('gb', GradientBoostingRegressor()), ('l', Lasso(alpha=0.001))])  #= model
model = MultiOutputRegressor(ensemble)  #= model
cv_scores = cross_val_score(model, X, y, cv=KFold(5, shuffle=True, random_state=42), scoring=make_scorer(rmsle, greater_is_better=False))  #= test-loss, trained?
print(f'Cross-validation RMSLE: {-cv_scores.mean():.4f}')  #= test-loss
model.fit(X, y)  #= trained
train_preds = model.predict(X)
print(f'Train RMSLE: {rmsle(y, train_preds):.4f}')  #= train-loss
test_preds = model.predict(test_data.drop(columns=['id']))  #= predicted
submission = pd.DataFrame(test_preds, columns=targets)
submission['id'] = test_data['id']
submission[['id'] + targets].to_csv('submission.csv', index=False)
