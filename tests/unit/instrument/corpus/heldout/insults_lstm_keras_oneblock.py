import re
import numpy as np
import pandas as pd
import tensorflow as tf
from tensorflow.keras.preprocessing.text import Tokenizer
from tensorflow.keras.preprocessing.sequence import pad_sequences  #= packages

def clean(s):
    s = s.encode('utf-8').decode('unicode_escape', errors='ignore')
    return re.sub(r'[^a-zA-Z ]', ' ', s).lower()

class InsultClassifier(tf.keras.Model):
    def __init__(self, vocab):
        super().__init__()
        self.emb = tf.keras.layers.Embedding(vocab, 32)
        self.gru = tf.keras.layers.GRU(32)
        self.out = tf.keras.layers.Dense(1, activation='sigmoid')

    def call(self, x):
        return self.out(self.gru(self.emb(x)))

df = pd.read_csv('/workdir/detecting-insults-in-social-commentary/prepared/public/train.csv')  #= data
tdf = pd.read_csv('/workdir/detecting-insults-in-social-commentary/prepared/public/test.csv')  #= data
tk = Tokenizer(8000)
tk.fit_on_texts(df.Comment.map(clean))
seq = pad_sequences(tk.texts_to_sequences(df.Comment.map(clean)), 80)
tseq = pad_sequences(tk.texts_to_sequences(tdf.Comment.map(clean)), 80)

net = InsultClassifier(8000)  #= model
net.compile('adam', 'binary_crossentropy', metrics=['AUC'])  #= model
log = net.fit(seq, df.Insult.values, epochs=4, validation_split=0.2, batch_size=32)  #= trained, train-loss?, test-loss?
for e in range(4):  #= train-loss, test-loss
    print('epoch', e + 1, 'loss', log.history['loss'][e], 'val_loss', log.history['val_loss'][e])  #= train-loss, test-loss

tdf['Insult'] = net.predict(tseq)[:, 0]  #= predicted
tdf[['Insult', 'Date', 'Comment']].to_csv('submission.csv', index=False)
