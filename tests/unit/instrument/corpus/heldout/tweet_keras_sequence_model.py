import pandas as pd
import numpy as np
from tensorflow.keras.preprocessing.text import Tokenizer
from tensorflow.keras.preprocessing.sequence import pad_sequences
from tensorflow.keras.models import Sequential
from tensorflow.keras.layers import Embedding, LSTM, Bidirectional, TimeDistributed, Dense
from sklearn.model_selection import train_test_split  #= packages

train = pd.read_csv('/workdir/tweet-sentiment-extraction/prepared/public/train.csv').dropna()  #= data
test = pd.read_csv('/workdir/tweet-sentiment-extraction/prepared/public/test.csv')  #= data

MAX_LEN = 35
tok = Tokenizer(num_words=20000, oov_token='<unk>')
tok.fit_on_texts(train['text'])

def encode(df):
    texts = (df['sentiment'] + ' ' + df['text'].fillna('')).tolist()
    return pad_sequences(tok.texts_to_sequences(texts), maxlen=MAX_LEN, padding='post')

def make_labels(df):
    labels = np.zeros((len(df), MAX_LEN, 1))
    for i, (t, s) in enumerate(zip(df['text'], df['selected_text'])):
        chosen = set(s.split())
        for j, w in enumerate(t.split()[:MAX_LEN - 1]):
            labels[i, j + 1, 0] = float(w in chosen)
    return labels

X_train, X_val, y_train, y_val = train_test_split(encode(train), make_labels(train), test_size=0.1, random_state=42)

model = Sequential([  #= model
    Embedding(20000, 64),
    Bidirectional(LSTM(64, return_sequences=True)),
    TimeDistributed(Dense(1, activation='sigmoid')),
])
model.compile(loss='binary_crossentropy', optimizer='adam', metrics=['accuracy'])  #= model

history = model.fit(X_train, y_train, epochs=3, batch_size=128, validation_data=(X_val, y_val))  #= trained, train-loss?, test-loss?
print('Training loss:', history.history['loss'][-1])  #= train-loss
print('Validation loss:', history.history['val_loss'][-1])  #= test-loss

probs = model.predict(encode(test))  #= predicted
selected = []
for text, p in zip(test['text'].fillna(''), probs):
    words = text.split()
    keep = [w for j, w in enumerate(words) if j + 1 < MAX_LEN and p[j + 1, 0] > 0.5]
    selected.append(' '.join(keep) if keep else text)
test['selected_text'] = selected
test[['textID', 'selected_text']].to_csv('submission.csv', index=False)
