import os
import numpy as np
import pandas as pd
from PIL import Image
from tqdm import tqdm
from sklearn.decomposition import PCA
from sklearn.svm import SVC
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.metrics import log_loss, roc_auc_score  #= packages

PATH = "/workdir/plant-pathology-2020-fgvc7/prepared/public"
IMG_SIZE = 48

def load_image(image_id):
    with Image.open(os.path.join(PATH, "images", image_id + ".jpg")) as img:
        return np.asarray(img.resize((IMG_SIZE, IMG_SIZE))).ravel() / 255.0  #= data

train_df = pd.read_csv(os.path.join(PATH, "train.csv"))  #= data
test_df = pd.read_csv(os.path.join(PATH, "test.csv"))  #= data
X = np.stack([load_image(i) for i in tqdm(train_df.image_id)])  #= data
X_test = np.stack([load_image(i) for i in tqdm(test_df.image_id)])  #= data
label_cols = list(train_df.columns[1:])
y = train_df[label_cols].values.argmax(1)

model = Pipeline([("scale", StandardScaler()), ("pca", PCA(100)), ("svc", SVC(probability=True, C=5))])  #= model
oof = cross_val_predict(model, X, y, cv=StratifiedKFold(3), method="predict_proba")  #= trained?
print("CV log loss:", log_loss(y, oof))  #= test-loss
print("CV mean AUC:", np.mean([roc_auc_score(y == k, oof[:, k]) for k in range(4)]))  #= test-loss
model.fit(X, y)  #= trained
print("Train log loss:", log_loss(y, model.predict_proba(X)))  #= train-loss
sub = test_df[["image_id"]].join(pd.DataFrame(model.predict_proba(X_test), columns=label_cols))  #= predicted
sub.to_csv("submission.csv", index=False)
