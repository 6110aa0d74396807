import os
import numpy as np
import pandas as pd
from PIL import Image
from tensorflow.keras import Sequential
from tensorflow.keras.layers import Conv2D, MaxPooling2D, Flatten, Dense, Dropout
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split  #= packages

DIR = '/workdir/plant-pathology-2020-fgvc7/prepared/public'
IMG = 100
labels = ['healthy', 'multiple_diseases', 'rust', 'scab']


def load_images(ids):
    imgs = []
    for i in ids:
        im = Image.open(os.path.join(DIR, 'images', i + '.jpg')).resize((IMG, IMG))  #= data
        imgs.append(np.array(im) / 255.0)
    return np.array(imgs, dtype='float32')


train = pd.read_csv(os.path.join(DIR, 'train.csv'))  #= data
test = pd.read_csv(os.path.join(DIR, 'test.csv'))  #= data
x = load_images(train['image_id'])  #= data
y = train[labels].values
x_train, x_val, y_train, y_val = train_test_split(x, y, test_size=0.2, random_state=0)

cnn = Sequential([
    Conv2D(32, (3, 3), activation='relu', input_shape=(IMG, IMG, 3)),
    MaxPooling2D(),
    Conv2D(64, (3, 3), activation='relu'),
    MaxPooling2D(),
    Flatten(),
    Dropout(0.5),
    Dense(4, activation='softmax'),
])  #= model
cnn.compile('adam', 'categorical_crossentropy', metrics=['accuracy'])
hist = cnn.fit(x_train, y_train, epochs=8, validation_data=(x_val, y_val))  #= trained, train-loss?, test-loss?
for e, (tl, vl) in enumerate(zip(hist.history['loss'], hist.history['val_loss'])):  #= train-loss, test-loss
    print(e, tl, vl)  #= train-loss, test-loss
print('val auc', roc_auc_score(y_val, cnn.predict(x_val), average='macro'))  #= test-loss
x_test = load_images(test['image_id'])  #= data
p = cnn.predict(x_test)  #= predicted
out = pd.DataFrame(p, columns=labels)
out.insert(0, 'image_id', test['image_id'])
out.to_csv('submission.csv', index=False)
