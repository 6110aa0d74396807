from dataclasses import dataclass
import os
import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import LabelEncoder  #= packages


@dataclass
class Config:
    data_dir: str = "/workdir/leaf-classification/prepared/public"
    n_estimators: int = 500
    seed: int = 42
    test_size: float = 0.2


class LeafSolver:
    def __init__(self, config):
        self.config = config
        self.encoder = LabelEncoder()
        self.model = RandomForestClassifier(n_estimators=config.n_estimators, random_state=config.seed)  #= model

    def load(self):
        self.train = pd.read_csv(os.path.join(self.config.data_dir, "train.csv"))  #= data
        self.test = pd.read_csv(os.path.join(self.config.data_dir, "test.csv"))  #= data

    def prepare(self):
        y = self.encoder.fit_transform(self.train["species"])
        X = self.train.drop(columns=["id", "species"])
        self.X_train, self.X_val, self.y_train, self.y_val = train_test_split(
            X, y, test_size=self.config.test_size, stratify=y, random_state=self.config.seed
        )

    def fit(self):
        self.model.fit(self.X_train, self.y_train)  #= trained

    def evaluate(self):
        train_loss = log_loss(self.y_train, self.model.predict_proba(self.X_train))  #= train-loss
        val_loss = log_loss(self.y_val, self.model.predict_proba(self.X_val))  #= test-loss
        print(f"Train loss: {train_loss:.4f}")
        print(f"Val loss: {val_loss:.4f}")

    def submit(self):
        proba = self.model.predict_proba(self.test.drop(columns=["id"]))  #= predicted
        sub = pd.DataFrame(proba, columns=self.encoder.classes_)
        sub.insert(0, "id", self.test["id"])
        sub.to_csv("submission.csv", index=False)

    def run(self):
        self.load()  #= data
        self.prepare()
        self.fit()  #= trained
        self.evaluate()  #= train-loss, test-loss
        self.submit()  #= predicted


if __name__ == "__main__":
    LeafSolver(Config()).run()  #= data?, model?, trained?, train-loss?, test-loss?, predicted?
