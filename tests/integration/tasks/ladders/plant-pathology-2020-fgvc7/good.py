"""Extra trees on the colours of pixels and patches, relative to the leaf's own colour."""

import numpy as np
import pandas as pd
from PIL import Image
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

DATA = "/workdir/plant-pathology-2020-fgvc7/prepared/public"
TARGETS = ["healthy", "multiple_diseases", "rust", "scab"]
SHARES = np.array([0.01, 0.03, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 0.99, 0.997])


def spread(values):
    ordered = np.sort(values, axis=None)
    return ordered[(SHARES * (ordered.size - 1)).astype(int)]


def shrink(channel, size):
    h, w = (length // size * size for length in channel.shape)
    return channel[:h, :w].reshape(h // size, size, w // size, size).mean(axis=(1, 3))


def describe(image_id):
    with Image.open(f"{DATA}/images/{image_id}.jpg") as image:
        image.draft("RGB", (192, 128))
        pixels = np.asarray(image.convert("RGB").resize((96, 64)), dtype=np.float32) + 8
    centre = np.log(pixels[12:52, 18:78])
    features = [centre.mean(axis=(0, 1)), np.log(pixels).mean(axis=(0, 1))]
    red, green, blue = centre[..., 0], centre[..., 1], centre[..., 2]
    for channel in (red - green, blue - green, red + green + blue):
        relative = channel - np.median(channel)
        features.append(spread(relative))
        for size in (2, 5):
            patches = shrink(relative, size)
            around = patches[:-2, 1:-1] + patches[2:, 1:-1] + patches[1:-1, :-2] + patches[1:-1, 2:]
            detail = patches[1:-1, 1:-1] - around / 4
            features += [spread(detail), [detail.std()]]
    return np.concatenate(features)


train = pd.read_csv(f"{DATA}/train.csv")
test = pd.read_csv(f"{DATA}/test.csv")
X = np.array([describe(image_id) for image_id in train["image_id"]])
X_test = np.array([describe(image_id) for image_id in test["image_id"]])
y = train[TARGETS].to_numpy().argmax(axis=1)

X_fit, X_held, y_fit, y_held = train_test_split(X, y, test_size=0.15, random_state=0, stratify=y)
model = ExtraTreesClassifier(
    n_estimators=150, min_samples_leaf=2, max_features=0.3, class_weight="balanced", random_state=0
)
model.fit(X_fit, y_fit)
print("training loss", log_loss(y_fit, model.predict_proba(X_fit)))
held = model.predict_proba(X_held)
print("validation loss", log_loss(y_held, held))
print("validation AUC", np.mean([roc_auc_score(y_held == k, held[:, k]) for k in range(4)]))

submission = test[["image_id"]].copy()
submission[TARGETS] = model.predict_proba(X_test)
submission.to_csv("submission.csv", index=False)
