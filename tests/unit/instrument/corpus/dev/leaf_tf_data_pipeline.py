import pandas as pd
import numpy as np
import tensorflow as tf  #= packages

print(tf.__version__)
folder = '/workdir/leaf-classification/prepared/public/'
train = pd.read_csv(folder + 'train.csv')  #= data
test = pd.read_csv(folder + 'test.csv')  #= data

names, labels = np.unique(train['species'], return_inverse=True)
feature_columns = [c for c in train.columns if c not in ('id', 'species')]
mean, std = train[feature_columns].mean(), train[feature_columns].std()
X = ((train[feature_columns] - mean) / std).values.astype('float32')
X_sub = ((test[feature_columns] - mean) / std).values.astype('float32')

ds = tf.data.Dataset.from_tensor_slices((X, labels)).shuffle(len(X), seed=4, reshuffle_each_iteration=False)
val_ds = ds.take(100).batch(32)
train_ds = ds.skip(100).batch(32)

model = tf.keras.Sequential()  #= model
model.add(tf.keras.layers.Dense(512, activation='relu', input_shape=(X.shape[1],)))
model.add(tf.keras.layers.Dropout(0.3))
model.add(tf.keras.layers.Dense(len(names), activation='softmax'))  #= model
model.compile('adam', 'sparse_categorical_crossentropy', ['accuracy'])  #= model

hist = model.fit(train_ds, epochs=50, validation_data=val_ds, verbose=0)  #= trained, train-loss?, test-loss?
for key, values in hist.history.items():  #= train-loss, test-loss
    print(key, values[-1])  #= train-loss
loss, acc = model.evaluate(val_ds)  #= test-loss
print('val', loss, acc)

probabilities = model.predict(X_sub)  #= predicted
res = pd.DataFrame(probabilities, columns=names)
res.insert(0, 'id', test['id'])
res.to_csv('submission.csv', index=False)
