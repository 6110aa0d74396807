import argparse
import logging
import re

import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import MultinomialNB  #= packages

logging.basicConfig(level=logging.INFO)
logger = logging.getLogger(__name__)


def clean(text):
    text = text.strip('"').lower()
    text = re.sub(r'\\x[0-9a-f]{2}', ' ', text)
    return re.sub(r'[^a-z ]', ' ', text)


def load_data(data_dir):
    train = pd.read_csv(f'{data_dir}/train.csv')  #= data
    test = pd.read_csv(f'{data_dir}/test.csv')  #= data
    for df in (train, test):
        df['clean'] = df['Comment'].apply(clean)
    return train, test


def train_model(X, y):
    model = MultinomialNB(alpha=0.3)  #= model
    model.fit(X, y)  #= trained
    return model


def evaluate(model, X, y, name):
    auc = roc_auc_score(y, model.predict_proba(X)[:, 1])
    logger.info('%s AUC: %.4f', name, auc)
    return auc


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--data_dir', default='/workdir/detecting-insults-in-social-commentary/prepared/public')
    parser.add_argument('--output', default='submission.csv')
    args = parser.parse_args()

    train, test = load_data(args.data_dir)  #= data
    vec = CountVectorizer(ngram_range=(1, 2), min_df=2)
    X = vec.fit_transform(train['clean'])
    X_test = vec.transform(test['clean'])
    X_tr, X_val, y_tr, y_val = train_test_split(X, train['Insult'], test_size=0.2, random_state=1)

    model = train_model(X_tr, y_tr)  #= model, trained
    evaluate(model, X_tr, y_tr, 'train')  #= train-loss
    evaluate(model, X_val, y_val, 'val')  #= test-loss

    test['Insult'] = model.predict_proba(X_test)[:, 1]  #= predicted
    test[['Insult', 'Date', 'Comment']].to_csv(args.output, index=False)


if __name__ == '__main__':
    main()
