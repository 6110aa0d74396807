import os

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor
from sklearn.metrics import mean_squared_log_error
from sklearn.model_selection import train_test_split  #> 1

base_path = "/workdir/nomad2018-predict-transparent-conductors/prepared/public"
train = pd.read_csv(os.path.join(base_path, "train.csv"))
test = pd.read_csv(os.path.join(base_path, "test.csv"))  #> 2


def add_features(df):
    df = df.copy()
    alpha = np.radians(df["lattice_angle_alpha_degree"])
    beta = np.radians(df["lattice_angle_beta_degree"])
    gamma = np.radians(df["lattice_angle_gamma_degree"])
    lengths = df["lattice_vector_1_ang"] * df["lattice_vector_2_ang"] * df["lattice_vector_3_ang"]
    df["volume"] = lengths * np.sqrt(
        1
        - np.cos(alpha) ** 2
        - np.cos(beta) ** 2
        - np.cos(gamma) ** 2
        + 2 * np.cos(alpha) * np.cos(beta) * np.cos(gamma)
    )
    df["density"] = df["number_of_total_atoms"] / df["volume"]
    return df


targets = ["formation_energy_ev_natom", "bandgap_energy_ev"]
train = add_features(train)
test = add_features(test)
features = [c for c in train.columns if c not in ["id"] + targets]

X = train[features]
y = np.log1p(train[targets])
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, random_state=0)

model = RandomForestRegressor(n_estimators=40, min_samples_leaf=2, random_state=0, n_jobs=1)  #> 3
model.fit(X_train, y_train)  #> 5


def rmsle(y_true, y_pred):
    return np.mean(
        [
            np.sqrt(mean_squared_log_error(y_true[:, i], y_pred[:, i]))
            for i in range(y_true.shape[1])
        ]
    )


train_pred = np.expm1(model.predict(X_train))
train_score = rmsle(np.expm1(y_train).values, train_pred)  #> 4
print("Train RMSLE:", train_score)
val_pred = np.expm1(model.predict(X_val))
val_score = rmsle(np.expm1(y_val).values, val_pred)  #> 6
print("Validation RMSLE:", val_score)

test_pred = np.clip(np.expm1(model.predict(test[features])), 0, None)  #> 7

submission = pd.DataFrame({"id": test["id"]})
for i, target in enumerate(targets):
    submission[target] = test_pred[:, i]
submission.to_csv("submission.csv", index=False)
