import pandas as pd
import numpy as np
from tensorflow import keras  #= packages

train = pd.read_csv('/workdir/plant-pathology-2020-fgvc7/prepared/public/train.csv')  #= data

def load_image(name):
    img = keras.utils.load_img(f'/workdir/plant-pathology-2020-fgvc7/prepared/public/images/{name}.jpg', target_size=(128, 128))  #= data
    return keras.utils.img_to_array(img) / 255.0

images = np.array([load_image(n) for n in train['image_id']])  #= data
labels = train[['healthy', 'multiple_diseases', 'rust', 'scab']].values

model = keras.Sequential([
    keras.layers.Conv2D(16, 3, activation='relu', input_shape=(128, 128, 3)),
    keras.layers.MaxPooling2D(),
    keras.layers.Flatten(),
    keras.layers.Dense(4, activation='softmax'),
])  #= model
model.compile(optimizer='adam', loss='categorical_crossentropy', metrics=['accuracy'])
model.fit(images, labels, epochs=10, validation_split=0.2)  #= trained, train-loss?, test-loss?
model.save('model.h5')
# Next: predict on the test set
