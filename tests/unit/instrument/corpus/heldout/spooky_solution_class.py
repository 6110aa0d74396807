import argparse

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import MultinomialNB  #= packages


class AuthorIdentifier:
    def __init__(self, data_dir, seed=0):
        self.data_dir = data_dir
        self.seed = seed
        self.vectorizer = CountVectorizer(ngram_range=(1, 2), min_df=2)
        self.models = {'nb': MultinomialNB(), 'lr': LogisticRegression(max_iter=300)}  #= model
        self.weights = {'nb': 0.5, 'lr': 0.5}

    def load_data(self):
        self.train = pd.read_csv(f'{self.data_dir}/train.csv')  #= data
        self.test = pd.read_csv(f'{self.data_dir}/test.csv')  #= data

    def preprocess(self):
        X = self.vectorizer.fit_transform(self.train['text'])
        self.classes = sorted(self.train['author'].unique())
        y = self.train['author'].map({c: i for i, c in enumerate(self.classes)})
        self.X_tr, self.X_va, self.y_tr, self.y_va = train_test_split(X, y, test_size=0.2, random_state=self.seed)
        self.X_te = self.vectorizer.transform(self.test['text'])

    def train_models(self):
        for name, model in self.models.items():
            print('fitting', name)
            model.fit(self.X_tr, self.y_tr)  #= trained

    def blend(self, X):
        return sum(self.weights[n] * m.predict_proba(X) for n, m in self.models.items())

    def report(self):
        print('train loss:', log_loss(self.y_tr, self.blend(self.X_tr)))  #= train-loss
        print('val loss:', log_loss(self.y_va, self.blend(self.X_va)))  #= test-loss

    def write_submission(self, path):
        probs = self.blend(self.X_te)  #= predicted
        out = pd.DataFrame(probs, columns=self.classes)
        out.insert(0, 'id', self.test['id'])
        out.to_csv(path, index=False)


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--data', default='/workdir/spooky-author-identification/prepared/public')
    args = parser.parse_args()
    solver = AuthorIdentifier(args.data)  #= model
    solver.load_data()  #= data
    solver.preprocess()
    solver.train_models()  #= trained
    solver.report()  #= train-loss, test-loss
    solver.write_submission('submission.csv')  #= predicted
