import numpy as np
import pandas as pd
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers
from sklearn.metrics import roc_auc_score  #= packages

data_path = "/workdir/detecting-insults-in-social-commentary/prepared/public"
train_df = pd.read_csv(f"{data_path}/train.csv")  #= data
test_df = pd.read_csv(f"{data_path}/test.csv")  #= data

train_df = train_df.sample(frac=1, random_state=1)
n_val = int(len(train_df) * 0.2)
val_df, trn_df = train_df[:n_val], train_df[n_val:]

vectorize_layer = layers.TextVectorization(max_tokens=15000, output_sequence_length=100)
vectorize_layer.adapt(trn_df["Comment"].values)

inputs = keras.Input(shape=(1,), dtype=tf.string)
x = vectorize_layer(inputs)
x = layers.Embedding(15000, 64)(x)
x = layers.Conv1D(64, 5, activation="relu")(x)
x = layers.GlobalMaxPooling1D()(x)
x = layers.Dropout(0.4)(x)
outputs = layers.Dense(1, activation="sigmoid")(x)
model = keras.Model(inputs, outputs)  #= model
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])  #= model
model.summary()

early = keras.callbacks.EarlyStopping(patience=2, restore_best_weights=True)
model.fit(
    trn_df["Comment"].values, trn_df["Insult"].values,
    validation_data=(val_df["Comment"].values, val_df["Insult"].values),
    epochs=10, batch_size=64, callbacks=[early],
)  #= trained, train-loss?, test-loss?

train_loss, train_acc = model.evaluate(trn_df["Comment"].values, trn_df["Insult"].values, verbose=0)  #= train-loss
val_loss, val_acc = model.evaluate(val_df["Comment"].values, val_df["Insult"].values, verbose=0)  #= test-loss
print(f"Train loss: {train_loss:.4f}")
print(f"Val loss: {val_loss:.4f}, Val AUC: {roc_auc_score(val_df['Insult'], model.predict(val_df['Comment'].values).ravel()):.4f}")

test_df["Insult"] = model.predict(test_df["Comment"].values).ravel()  #= predicted
test_df[["Insult", "Date", "Comment"]].to_csv("submission.csv", index=False)
