import pandas as pd
import tensorflow as tf
from tensorflow.keras.preprocessing.image import ImageDataGenerator
from tensorflow.keras.applications import MobileNetV2
from tensorflow.keras.layers import Dense, GlobalAveragePooling2D, Dropout
from tensorflow.keras.models import Model
from tensorflow.keras.optimizers import Adam  #= packages

base_path = '/workdir/plant-pathology-2020-fgvc7/prepared/public/'
train_df = pd.read_csv(base_path + 'train.csv')  #= data
test_df = pd.read_csv(base_path + 'test.csv')  #= data
train_df['filename'] = train_df['image_id'] + '.jpg'
test_df['filename'] = test_df['image_id'] + '.jpg'
cols = ['healthy', 'multiple_diseases', 'rust', 'scab']

datagen = ImageDataGenerator(rescale=1./255, validation_split=0.2, horizontal_flip=True)
train_gen = datagen.flow_from_dataframe(train_df, directory=base_path + 'images', x_col='filename', y_col=cols,
                                        class_mode='raw', target_size=(224, 224), batch_size=32, subset='training')  #= data
val_gen = datagen.flow_from_dataframe(train_df, directory=base_path + 'images', x_col='filename', y_col=cols,
                                      class_mode='raw', target_size=(224, 224), batch_size=32, subset='validation')  #= data
test_gen = ImageDataGenerator(rescale=1./255).flow_from_dataframe(
    test_df, directory=base_path + 'images', x_col='filename', class_mode=None, target_size=(224, 224), shuffle=False)  #= data

base_model = MobileNetV2(weights=None, include_top=False, input_shape=(224, 224, 3))  #= model
x = GlobalAveragePooling2D()(base_model.output)
x = Dropout(0.2)(x)
outputs = Dense(4, activation='softmax')(x)
model = Model(inputs=base_model.input, outputs=outputs)  #= model
model.compile(optimizer=Adam(1e-4), loss='categorical_crossentropy', metrics=['accuracy'])  #= model

history = model.fit(train_gen, validation_data=val_gen, epochs=5)  #= trained, train-loss?, test-loss?
train_loss = history.history['loss'][-1]  #= train-loss
val_loss, val_acc = model.evaluate(val_gen)  #= test-loss
print(f"Training loss: {train_loss}")  #= train-loss
print(f"Testing loss: {val_loss}")  #= test-loss

predictions = model.predict(test_gen)  #= predicted
submission = pd.concat([test_df[['image_id']], pd.DataFrame(predictions, columns=cols)], axis=1)
submission.to_csv('./submission.csv', index=False)
