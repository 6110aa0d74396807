import logging
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.metrics import log_loss, accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import LabelEncoder  #= packages

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("leaf")
DATA_DIR = Path("/workdir/leaf-classification/prepared/public")


def print_metrics(name, model, X, y):
    proba = model.predict_proba(X)
    log.info("%s loss=%.4f acc=%.4f", name, log_loss(y, proba), accuracy_score(y, proba.argmax(1)))


def make_submission(ids, proba, classes, path="submission.csv"):
    df = pd.DataFrame(proba, columns=classes)
    df.insert(0, "id", ids)
    df.to_csv(path, index=False)


if __name__ == "__main__":
    df_train = pd.read_csv(DATA_DIR / "train.csv")  #= data
    df_test = pd.read_csv(DATA_DIR / "test.csv")  #= data
    encoder = LabelEncoder()
    target = encoder.fit_transform(df_train["species"])
    feats = df_train.drop(columns=["id", "species"])
    a_x, b_x, a_y, b_y = train_test_split(feats, target, test_size=0.2, stratify=target, random_state=7)
    gb = GradientBoostingClassifier(n_estimators=20)  #= model
    log.info("fitting")
    gb.fit(a_x, a_y)  #= trained
    print_metrics("train", gb, a_x, a_y)  #= train-loss
    print_metrics("valid", gb, b_x, b_y)  #= test-loss
    make_submission(df_test["id"], gb.predict_proba(df_test.drop(columns=["id"])), encoder.classes_)  #= predicted
