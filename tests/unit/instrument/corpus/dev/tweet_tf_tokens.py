import numpy as np
import pandas as pd
import tensorflow as tf
from tensorflow.keras import layers, models  #= packages

train = pd.read_csv('/workdir/tweet-sentiment-extraction/prepared/public/train.csv').fillna('')  #= data
test = pd.read_csv('/workdir/tweet-sentiment-extraction/prepared/public/test.csv').fillna('')  #= data

MAX_LEN = 32
vocab = {'<pad>': 0, '<unk>': 1, 'positive': 2, 'negative': 3, 'neutral': 4}
for t in train['text']:
    for w in t.lower().split():
        vocab.setdefault(w, len(vocab))

def encode(text, sentiment):
    ids = [vocab.get(sentiment, 1)] + [vocab.get(w, 1) for w in text.lower().split()]
    return (ids + [0] * MAX_LEN)[:MAX_LEN]

def span(text, sel):
    words, s = text.lower().split(), set(sel.lower().split())
    m = [1.0 if w in s else 0.0 for w in words]
    return ([0.0] + m + [0.0] * MAX_LEN)[:MAX_LEN]

X = np.array([encode(t, s) for t, s in zip(train.text, train.sentiment)])
Y = np.array([span(t, s) for t, s in zip(train.text, train.selected_text)])
X_test = np.array([encode(t, s) for t, s in zip(test.text, test.sentiment)])

inp = layers.Input((MAX_LEN,))
h = layers.Embedding(len(vocab), 64)(inp)
h = layers.Bidirectional(layers.LSTM(32, return_sequences=True))(h)
out = layers.TimeDistributed(layers.Dense(1, activation='sigmoid'))(h)
model = models.Model(inp, out)  #= model
model.compile('adam', 'binary_crossentropy')

hist = model.fit(X, Y, epochs=3, batch_size=128, validation_split=0.1)  #= trained, train-loss?, test-loss?
print(hist.history['loss'])  #= train-loss
print(hist.history['val_loss'])  #= test-loss

mask = model.predict(X_test)[:, :, 0] > 0.5  #= predicted
rows = []
for i, (t, s) in enumerate(zip(test.text, test.sentiment)):
    words = t.split()
    keep = [w for w, m in zip(words, mask[i, 1:]) if m]
    rows.append(t if s == 'neutral' or not keep else ' '.join(keep))
pd.DataFrame({'textID': test.textID, 'selected_text': rows}).to_csv('submission.csv', index=False)
