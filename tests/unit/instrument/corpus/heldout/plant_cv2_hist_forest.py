import os
import cv2
import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split  #= packages

data_dir = '/workdir/plant-pathology-2020-fgvc7/prepared/public'
image_dir = os.path.join(data_dir, 'images')
train_df = pd.read_csv(os.path.join(data_dir, 'train.csv'))  #= data
test_df = pd.read_csv(os.path.join(data_dir, 'test.csv'))  #= data
classes = ['healthy', 'multiple_diseases', 'rust', 'scab']

def color_histogram(image_id):
    img = cv2.imread(os.path.join(image_dir, image_id + '.jpg'))  #= data
    img = cv2.resize(img, (128, 128))
    hsv = cv2.cvtColor(img, cv2.COLOR_BGR2HSV)
    hist = cv2.calcHist([hsv], [0, 1], None, [16, 16], [0, 180, 0, 256])
    return cv2.normalize(hist, hist).flatten()

X = np.array([color_histogram(i) for i in train_df['image_id']])  #= data
X_test = np.array([color_histogram(i) for i in test_df['image_id']])  #= data
y = train_df[classes].values.argmax(axis=1)

X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, stratify=y, random_state=42)
model = RandomForestClassifier(n_estimators=400, random_state=42)  #= model
model.fit(X_train, y_train)  #= trained
print('train loss', log_loss(y_train, model.predict_proba(X_train)))  #= train-loss
print('val loss', log_loss(y_val, model.predict_proba(X_val)))  #= test-loss

pred = model.predict_proba(X_test)  #= predicted
sub = pd.DataFrame(pred, columns=classes)
sub['image_id'] = test_df['image_id']
sub = sub[['image_id'] + classes]
sub.to_csv('submission.csv', index=False)
