import numpy as np
import pandas as pd
import xgboost as xgb
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import KFold  #> 1

DIR = "/workdir/nomad2018-predict-transparent-conductors/prepared/public"
train = pd.read_csv(DIR + "/train.csv")
test = pd.read_csv(DIR + "/test.csv")  #> 2
features = [c for c in test.columns if c != "id"]
sub = pd.DataFrame({"id": test["id"]})
params = dict(n_estimators=60, max_depth=4, learning_rate=0.1, n_jobs=1, random_state=0)

for target in ["formation_energy_ev_natom", "bandgap_energy_ev"]:
    y = np.log1p(train[target])
    kf = KFold(n_splits=3, shuffle=True, random_state=0)
    preds = np.zeros(len(test))
    for fold, (trn, val) in enumerate(kf.split(train)):
        X_trn, y_trn = train.loc[trn, features], y.loc[trn]
        X_val, y_val = train.loc[val, features], y.loc[val]
        reg = xgb.XGBRegressor(**params)  #> 3
        reg.fit(X_trn, y_trn)  #> 5
        print(target, fold, "train", np.sqrt(mean_squared_error(y_trn, reg.predict(X_trn))))  #> 4
        print(target, fold, "valid", np.sqrt(mean_squared_error(y_val, reg.predict(X_val))))  #> 6
        preds += reg.predict(test[features]) / kf.get_n_splits()  #> 7
    sub[target] = np.clip(np.expm1(preds), 0, None)

sub.to_csv("submission.csv", index=False)
