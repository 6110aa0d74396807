"""Ridge regression of the logarithms of both energies."""

import numpy as np
import pandas as pd
from sklearn.linear_model import Ridge
from sklearn.metrics import root_mean_squared_error
from sklearn.model_selection import train_test_split

DATA = "/workdir/nomad2018-predict-transparent-conductors/prepared/public"
ENERGIES = ["formation_energy_ev_natom", "bandgap_energy_ev"]
train = pd.read_csv(f"{DATA}/train.csv")
test = pd.read_csv(f"{DATA}/test.csv")

X = train.drop(columns=["id", *ENERGIES])
y = np.log1p(train[ENERGIES])
X_fit, X_held, y_fit, y_held = train_test_split(X, y, test_size=0.2, random_state=0)

model = Ridge(alpha=1.0)
model.fit(X_fit, y_fit)
print("training loss", root_mean_squared_error(y_fit, model.predict(X_fit)))
print("validation loss", root_mean_squared_error(y_held, model.predict(X_held)))

submission = test[["id"]].copy()
submission[ENERGIES] = np.expm1(model.predict(test[X.columns])).clip(0)
submission.to_csv("submission.csv", index=False)
