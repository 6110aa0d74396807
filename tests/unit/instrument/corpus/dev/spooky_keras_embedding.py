import numpy as np
import pandas as pd
from keras.models import Sequential
from keras.layers import Embedding, GlobalAveragePooling1D, Dense, Dropout, LSTM
from keras.preprocessing.text import Tokenizer
from keras.preprocessing.sequence import pad_sequences
from keras.utils import to_categorical
from sklearn.preprocessing import LabelEncoder
from sklearn.model_selection import train_test_split  #= packages

train_df = pd.read_csv('/workdir/spooky-author-identification/prepared/public/train.csv')  #= data
test_df = pd.read_csv('/workdir/spooky-author-identification/prepared/public/test.csv')  #= data

MAX_WORDS, MAX_LEN = 20000, 100
tokenizer = Tokenizer(num_words=MAX_WORDS)
tokenizer.fit_on_texts(train_df['text'])
X = pad_sequences(tokenizer.texts_to_sequences(train_df['text']), maxlen=MAX_LEN)
X_test = pad_sequences(tokenizer.texts_to_sequences(test_df['text']), maxlen=MAX_LEN)

le = LabelEncoder()
y = to_categorical(le.fit_transform(train_df['author']))
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, random_state=42)

model = Sequential()  #= model
model.add(Embedding(MAX_WORDS, 64))
model.add(GlobalAveragePooling1D())
model.add(Dense(64, activation='relu'))
model.add(Dropout(0.5))
model.add(Dense(3, activation='softmax'))  #= model
model.compile(loss='categorical_crossentropy', optimizer='adam', metrics=['accuracy'])  #= model

model.fit(X_train, y_train, epochs=10, batch_size=64, validation_data=(X_val, y_val))  #= trained, train-loss?, test-loss?
loss, acc = model.evaluate(X_val, y_val)  #= test-loss
print('Validation loss:', loss)

predictions = model.predict(X_test)  #= predicted
submission = pd.DataFrame(predictions, columns=le.classes_)
submission.insert(0, 'id', test_df['id'])
submission.to_csv('submission.csv', index=False)
