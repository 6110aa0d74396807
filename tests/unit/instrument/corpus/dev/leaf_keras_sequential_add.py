import pandas as pd
import numpy as np
from keras.models import Sequential
from keras.layers import Dense, Dropout, Activation
from keras.utils import to_categorical
from sklearn.preprocessing import LabelEncoder, StandardScaler  #= packages

train = pd.read_csv("../input/train.csv")  #= data
labels = LabelEncoder().fit_transform(train.pop('species'))
train.pop('id')
X = StandardScaler().fit(train).transform(train)
y_cat = to_categorical(labels)

model = Sequential()  #= model
model.add(Dense(600, input_dim=192, activation='relu'))
model.add(Dropout(0.3))
model.add(Dense(99))
model.add(Activation('softmax'))  #= model
model.compile(loss='categorical_crossentropy', optimizer='rmsprop', metrics=["accuracy"])  #= model

history = model.fit(X, y_cat, batch_size=128, epochs=100, verbose=0, validation_split=0.1)  #= trained, train-loss?, test-loss?
print('val_acc: ', max(history.history['val_accuracy']))  #= test-loss
print('val_loss: ', min(history.history['val_loss']))  #= test-loss
print('train_loss: ', min(history.history['loss']))  #= train-loss

test = pd.read_csv('../input/test.csv')  #= data
index = test.pop('id')
test = StandardScaler().fit_transform(test)
yPred = model.predict(test)  #= predicted
yPred = pd.DataFrame(yPred, index=index, columns=sorted(pd.read_csv('../input/train.csv').species.unique()))  #= data
with open('submission.csv', 'w') as fp:
    fp.write(yPred.to_csv())
