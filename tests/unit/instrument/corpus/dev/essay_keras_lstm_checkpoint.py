import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split
from sklearn.metrics import cohen_kappa_score
from keras.models import Sequential, load_model
from keras.layers import Dense, LSTM, Embedding, Dropout
from keras.callbacks import ModelCheckpoint
from keras.preprocessing.text import Tokenizer
from keras.utils import pad_sequences  #= packages

train = pd.read_csv('/workdir/learning-agency-lab-automated-essay-scoring-2/prepared/public/train.csv')  #= data
test = pd.read_csv('/workdir/learning-agency-lab-automated-essay-scoring-2/prepared/public/test.csv')  #= data

max_words, max_len = 15000, 400
tokenizer = Tokenizer(num_words=max_words)
tokenizer.fit_on_texts(train['full_text'])
X = pad_sequences(tokenizer.texts_to_sequences(train['full_text']), maxlen=max_len)
X_test = pad_sequences(tokenizer.texts_to_sequences(test['full_text']), maxlen=max_len)
y = train['score'].values.astype('float32')
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.15, random_state=42)

def create_model():
    model = Sequential()  #= model
    model.add(Embedding(max_words, 64, input_length=max_len))
    model.add(LSTM(64))
    model.add(Dropout(0.3))
    model.add(Dense(1))  #= model
    model.compile(loss='mse', optimizer='adam')  #= model
    return model

model = create_model()  #= model
checkpoint = ModelCheckpoint('best.h5', save_best_only=True, monitor='val_loss')
history = model.fit(X_train, y_train, validation_data=(X_val, y_val), epochs=6, batch_size=64, callbacks=[checkpoint])  #= trained, train-loss?, test-loss?
best_model = load_model('best.h5')
train_mse = best_model.evaluate(X_train, y_train, verbose=0)  #= train-loss
val_mse = best_model.evaluate(X_val, y_val, verbose=0)  #= test-loss
print('Train MSE:', train_mse)
print('Val MSE:', val_mse)
val_scores = np.clip(np.rint(best_model.predict(X_val).flatten()), 1, 6).astype(int)
print('Val QWK:', cohen_kappa_score(y_val.astype(int), val_scores, weights='quadratic'))  #= test-loss

test['score'] = np.clip(np.rint(best_model.predict(X_test).flatten()), 1, 6).astype(int)  #= predicted
test[['essay_id', 'score']].to_csv('submission.csv', index=False)
