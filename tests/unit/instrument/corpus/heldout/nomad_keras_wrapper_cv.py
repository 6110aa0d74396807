import numpy as np
import pandas as pd
import tensorflow as tf
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler
from sklearn.metrics import mean_squared_log_error  #= packages


class NomadRegressor:
    def __init__(self, n_in, epochs=50):
        self.epochs = epochs
        self.scaler = StandardScaler()
        self.model = tf.keras.Sequential([  #= model
            tf.keras.layers.Dense(64, activation='relu', input_shape=(n_in,)),
            tf.keras.layers.Dense(32, activation='relu'),
            tf.keras.layers.Dense(2, activation='softplus'),
        ])
        self.model.compile(optimizer='adam', loss='msle')  #= model

    def train(self, X, y):
        Xs = self.scaler.fit_transform(X)
        history = self.model.fit(Xs, y, epochs=self.epochs, batch_size=32, verbose=0)  #= trained, train-loss?
        return history.history['loss'][-1]  #= train-loss

    def infer(self, X):
        return self.model.predict(self.scaler.transform(X), verbose=0)


train = pd.read_csv('/workdir/nomad2018-predict-transparent-conductors/prepared/public/train.csv')  #= data
test = pd.read_csv('/workdir/nomad2018-predict-transparent-conductors/prepared/public/test.csv')  #= data
targets = ['formation_energy_ev_natom', 'bandgap_energy_ev']
features = [c for c in test.columns if c != 'id']
X, Y = train[features].to_numpy(), train[targets].to_numpy()

test_preds = []
for k, (tr_idx, va_idx) in enumerate(KFold(5, shuffle=True, random_state=7).split(X)):
    reg = NomadRegressor(X.shape[1])  #= model
    train_loss = reg.train(X[tr_idx], Y[tr_idx])  #= trained, train-loss
    val_pred = reg.infer(X[va_idx])
    val_loss = np.mean([mean_squared_log_error(Y[va_idx, t], val_pred[:, t]) ** 0.5 for t in range(2)])  #= test-loss
    print(f'fold {k}: train {train_loss:.5f} val {val_loss:.5f}')  #= train-loss, test-loss
    test_preds.append(reg.infer(test[features].to_numpy()))  #= predicted

final = np.mean(test_preds, axis=0)
sub = pd.DataFrame(final, columns=targets)
sub.insert(0, 'id', test['id'])
sub.to_csv('submission.csv', index=False)
