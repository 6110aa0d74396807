import pandas as pd
import numpy as np
import tensorflow as tf
from tensorflow.keras import layers, models  #= packages

train_df = pd.read_csv('/workdir/tweet-sentiment-extraction/prepared/public/train.csv')  #= data
test_df = pd.read_csv('/workdir/tweet-sentiment-extraction/prepared/public/test.csv')  #= data

vectorizer = layers.TextVectorization(max_tokens=10000, output_sequence_length=32)
vectorizer.adapt(train_df['text'].astype(str).values)
X_train = vectorizer(train_df['text'].astype(str).values)

model = models.Sequential([  #= model
    layers.Embedding(10000, 32),
    layers.GlobalAveragePooling1D(),
    layers.Dense(32, activation='relu'),
    layers.Dense(32, activation='softmax'),
])
model.compile(optimizer='adam', loss='sparse_categorical_crossentropy')  #= model
model.fit(X_train, epochs=3)  #= trained, train-loss?
preds = model.predict(vectorizer(test_df['text'].astype(str).values))  #= predicted
test_df['selected_text'] = preds.argmax(axis=1)
test_df[['textID', 'selected_text']].to_csv('submission.csv', index=False)
