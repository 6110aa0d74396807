import numpy as np
import pandas as pd
import tensorflow as tf  #> 1

frame = pd.read_csv("train.csv")  #> 2
holdout = frame.sample(frac=0.2)
frame = frame.drop(holdout.index)
inputs = tf.keras.Input(shape=(10,))
hidden = tf.keras.layers.Dense(32)(inputs)
net = tf.keras.Model(inputs, tf.keras.layers.Dense(1)(hidden))  #> 3
net.compile(loss="mae")
net.fit(frame[["a"]], frame["y"], epochs=2)  #> 5
train_loss = net.evaluate(frame[["a"]], frame["y"])  #> 4
submission_frame = pd.read_csv("test.csv")  #> 2
result = net.predict(submission_frame[["a"]])  #> 7
