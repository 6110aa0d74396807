import os
import numpy as np
import pandas as pd
import tensorflow as tf
from tensorflow.keras.preprocessing.image import ImageDataGenerator
from tensorflow.keras.applications import EfficientNetB0
from tensorflow.keras import layers, Model, optimizers
from sklearn.model_selection import train_test_split  #= packages

base_dir = '/workdir/plant-pathology-2020-fgvc7/prepared/public'
train = pd.read_csv(os.path.join(base_dir, 'train.csv'))  #= data
test = pd.read_csv(os.path.join(base_dir, 'test.csv'))  #= data
train['image_id'] = train['image_id'] + '.jpg'
test['image_id'] = test['image_id'] + '.jpg'
label_cols = ['healthy', 'multiple_diseases', 'rust', 'scab']

train_df, val_df = train_test_split(train, test_size=0.2, random_state=42)

train_gen = ImageDataGenerator(rescale=1./255, horizontal_flip=True, rotation_range=20)
val_gen = ImageDataGenerator(rescale=1./255)

train_flow = train_gen.flow_from_dataframe(train_df, directory=base_dir + '/images', x_col='image_id', y_col=label_cols,
                                           class_mode='raw', target_size=(224, 224), batch_size=16)  #= data
val_flow = val_gen.flow_from_dataframe(val_df, directory=base_dir + '/images', x_col='image_id', y_col=label_cols,
                                       class_mode='raw', target_size=(224, 224), batch_size=16, shuffle=False)
test_flow = val_gen.flow_from_dataframe(test, directory=base_dir + '/images', x_col='image_id', y_col=None,
                                        class_mode=None, target_size=(224, 224), batch_size=16, shuffle=False)

backbone = EfficientNetB0(weights=None, include_top=False, input_shape=(224, 224, 3))  #= model?
x = layers.GlobalAveragePooling2D()(backbone.output)
x = layers.Dropout(0.3)(x)
outputs = layers.Dense(4, activation='softmax')(x)
model = Model(inputs=backbone.input, outputs=outputs)  #= model
model.compile(optimizer=optimizers.Adam(1e-4), loss='categorical_crossentropy', metrics=['accuracy'])

history = model.fit(train_flow, validation_data=val_flow, epochs=5)  #= trained, train-loss?, test-loss?
val_loss, val_acc = model.evaluate(val_flow)  #= test-loss
print('val', val_loss, val_acc)

preds = model.predict(test_flow)  #= predicted
sub = pd.DataFrame(preds, columns=label_cols)
sub['image_id'] = test['image_id'].str.replace('.jpg', '')
sub[['image_id'] + label_cols].to_csv('submission.csv', index=False)
