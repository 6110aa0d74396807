import pandas as pd
from sklearn.model_selection import KFold
from sklearn.metrics import mean_squared_error  #= packages

TARGETS = ['formation_energy_ev_natom', 'bandgap_energy_ev']
train = pd.read_csv('/workdir/nomad2018-predict-transparent-conductors/prepared/public/train.csv')  #= data
test = pd.read_csv('/workdir/nomad2018-predict-transparent-conductors/prepared/public/test.csv')  #= data
X = train.drop(TARGETS + ['id'], axis=1)
submission = pd.DataFrame({'id': test['id']})

for target in TARGETS:
    y = np.log1p(train[target])
    oof = np.zeros(len(train))
    pred = np.zeros(len(test))
    kf = KFold(n_splits=5, shuffle=True, random_state=42)
    for fold, (tr_idx, va_idx) in enumerate(kf.split(X)):
        model = lgb.LGBMRegressor(n_estimators=500, learning_rate=0.03)  #= model
        model.fit(X.iloc[tr_idx], y.iloc[tr_idx])  #= trained
        oof[va_idx] = model.predict(X.iloc[va_idx])
        pred += model.predict(test.drop('id', axis=1)) / kf.get_n_splits()  #= predicted
    rmse = mean_squared_error(y, oof) ** 0.5  #= test-loss
    print(f'{target} OOF RMSLE: {rmse:.5f}')
    submission[target] = np.expm1(pred)

submission.to_csv('submission.csv', index=False)
