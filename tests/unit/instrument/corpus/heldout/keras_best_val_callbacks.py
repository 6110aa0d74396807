import numpy as np
import pandas as pd
import tensorflow as tf
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler  #= packages

tf.random.set_seed(0)
np.random.seed(0)

train = pd.read_csv("/workdir/tabular-playground-series-may-2022/prepared/public/train.csv")  #= data
test = pd.read_csv("/workdir/tabular-playground-series-may-2022/prepared/public/test.csv")  #= data

def prep(df):
    df = df.copy()
    for i in range(10):
        df["ch_" + str(i)] = df["f_27"].str[i].apply(lambda c: ord(c) - ord("A"))
    return df.drop(columns=["f_27", "id"])

y = train.pop("target")
X_all = prep(train)
X_sub = prep(test)
ss = StandardScaler().fit(X_all)
Xt, Xv, yt, yv = train_test_split(ss.transform(X_all), y, test_size=0.1)

net = tf.keras.models.Sequential()  #= model
for units in (128, 64, 32):
    net.add(tf.keras.layers.Dense(units, activation="swish"))
net.add(tf.keras.layers.Dense(1, activation="sigmoid"))  #= model
net.compile(optimizer=tf.keras.optimizers.Adam(1e-3), loss="binary_crossentropy", metrics=[tf.keras.metrics.AUC(name="auc")])  #= model
cb = [tf.keras.callbacks.EarlyStopping(monitor="val_auc", mode="max", patience=4, restore_best_weights=True)]
h = net.fit(Xt, yt, validation_data=(Xv, yv), epochs=30, batch_size=4096, callbacks=cb, verbose=2)  #= trained, train-loss?, test-loss?
best_epoch = int(np.argmax(h.history["val_auc"]))
print("best epoch", best_epoch, "val auc", h.history["val_auc"][best_epoch])  #= test-loss
print("train auc", h.history["auc"][best_epoch])  #= train-loss

pred = net.predict(ss.transform(X_sub), batch_size=8192).flatten()  #= predicted
pd.DataFrame({"id": test["id"], "target": pred}).to_csv("submission.csv", index=False)
