import pandas as pd
import numpy as np
from tensorflow import keras
from tensorflow.keras import layers
from sklearn.preprocessing import StandardScaler
from sklearn.model_selection import train_test_split  #= packages

train_df = pd.read_csv("train.csv")  #= data
test_df = pd.read_csv("test.csv")  #= data
targets = ["formation_energy_ev_natom", "bandgap_energy_ev"]
X = train_df.drop(columns=["id"] + targets)
Y = np.log1p(train_df[targets])
X_test = test_df.drop(columns=["id"])
scaler = StandardScaler()
X_scaled = scaler.fit_transform(X)
X_test_scaled = scaler.transform(X_test)
x_tr, x_val, y_tr, y_val = train_test_split(X_scaled, Y, test_size=0.2, random_state=42)

def create_model():
    m = keras.Sequential([
        layers.Input(shape=(x_tr.shape[1],)),
        layers.Dense(128, activation="relu"),
        layers.Dense(64, activation="relu"),
        layers.Dense(2),
    ])  #= model
    m.compile(optimizer="adam", loss="mse")
    return m

model = create_model()  #= model
model.summary()
history = model.fit(x_tr, y_tr, epochs=100, batch_size=32, validation_data=(x_val, y_val), verbose=0)  #= trained, train-loss?, test-loss?
train_rmse = np.sqrt(model.evaluate(x_tr, y_tr, verbose=0))  #= train-loss
val_rmse = np.sqrt(model.evaluate(x_val, y_val, verbose=0))  #= test-loss
print(f"Train RMSLE: {train_rmse:.4f}, Validation RMSLE: {val_rmse:.4f}")
preds = np.expm1(model.predict(X_test_scaled))  #= predicted
sub = pd.DataFrame({"id": test_df["id"], targets[0]: preds[:, 0], targets[1]: preds[:, 1]})
sub.to_csv("submission.csv", index=False)
