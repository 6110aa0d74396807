import pandas as pd
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers
from tensorflow.keras.models import Sequential
from tensorflow.keras.layers import Dense, Dropout  #> 1

train = pd.read_csv("train.csv")  #> 2
test = pd.read_csv("test.csv")  #> 2
model = Sequential([Dense(64, activation="relu"), Dropout(0.5), Dense(1)])  #> 3
model.compile(optimizer="adam", loss="mse")
history = model.fit(x=train.drop("y", axis=1), y=train["y"], validation_split=0.2)  #> 5
print("train loss", history.history["loss"][-1])  #> 4
print("val loss", history.history["val_loss"][-1])  #> 6
predictions = model.predict(test)  #> 7
