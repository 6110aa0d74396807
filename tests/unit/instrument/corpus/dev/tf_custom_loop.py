import numpy as np
import pandas as pd
import tensorflow as tf
from tensorflow.keras import layers
from sklearn.model_selection import train_test_split  #= packages

train = pd.read_csv('train.csv')  #= data
test = pd.read_csv('test.csv')  #= data
feature_names = [c for c in train.columns if c not in ('Id', 'Cover_Type')]
X = train[feature_names].values.astype('float32')
y = train['Cover_Type'].values - 1
X_tr, X_va, y_tr, y_va = train_test_split(X, y, test_size=0.2)
ds = tf.data.Dataset.from_tensor_slices((X_tr, y_tr)).shuffle(10000).batch(512)
val_ds = tf.data.Dataset.from_tensor_slices((X_va, y_va)).batch(512)

model = tf.keras.Sequential([
    layers.Dense(128, activation='relu'),
    layers.Dense(7),
])  #= model
loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = tf.keras.optimizers.Adam()

for epoch in range(5):  #= trained
    for xb, yb in ds:  #= trained?
        with tf.GradientTape() as tape:
            logits = model(xb, training=True)
            loss = loss_fn(yb, logits)  #= train-loss
        grads = tape.gradient(loss, model.trainable_weights)
        optimizer.apply_gradients(zip(grads, model.trainable_weights))
    print('epoch', epoch, 'loss', float(loss))  #= train-loss
    val_losses = []
    for xb, yb in val_ds:
        val_losses.append(float(loss_fn(yb, model(xb, training=False))))  #= test-loss
    print('val loss', np.mean(val_losses))  #= test-loss

logits = model.predict(test[feature_names].values.astype('float32'))  #= predicted
test['Cover_Type'] = logits.argmax(axis=1) + 1
test[['Id', 'Cover_Type']].to_csv('submission.csv', index=False)
