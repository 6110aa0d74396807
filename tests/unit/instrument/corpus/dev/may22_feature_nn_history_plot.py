import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.preprocessing import StandardScaler
from tensorflow import keras  #= packages

train = pd.read_csv("/workdir/tabular-playground-series-may-2022/prepared/public/train.csv")  #= data
test = pd.read_csv("/workdir/tabular-playground-series-may-2022/prepared/public/test.csv")  #= data
cols = [c for c in test.columns if c not in ("id", "f_27")]
scaler = StandardScaler().fit(train[cols])
X, y = scaler.transform(train[cols]), train["target"].values

def get_model(n):
    inp = keras.layers.Input((n,))
    h = keras.layers.Dense(64, "swish")(inp)
    h = keras.layers.Dense(64, "swish")(h)
    out = keras.layers.Dense(1, "sigmoid")(h)
    model = keras.models.Model(inp, out)  #= model
    model.compile(keras.optimizers.Adam(1e-3), "binary_crossentropy", metrics=[keras.metrics.AUC(name="auc")])  #= model
    return model

model = get_model(X.shape[1])  #= model
hist = model.fit(X, y, validation_split=0.1, epochs=10, batch_size=2048, verbose=2)  #= trained, train-loss?, test-loss?
h = pd.DataFrame(hist.history)  #= train-loss, test-loss?
print(h[["loss", "val_loss", "auc", "val_auc"]].round(4))  #= train-loss, test-loss
h[["loss", "val_loss"]].plot()
plt.savefig("loss.png")

pred = model.predict(scaler.transform(test[cols]), batch_size=4096)  #= predicted
pd.DataFrame({"id": test["id"], "target": pred.ravel()}).to_csv("submission.csv", index=False)
