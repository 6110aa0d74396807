import logging
from pathlib import Path

import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.naive_bayes import ComplementNB, MultinomialNB
from sklearn.pipeline import make_pipeline  #= packages

logging.basicConfig(level=logging.INFO)
logger = logging.getLogger(__name__)

DATA_PATH = Path('/workdir/spooky-author-identification/prepared/public')


def read_frames():
    logger.info('reading data from %s', DATA_PATH)
    return pd.read_csv(DATA_PATH / 'train.csv'), pd.read_csv(DATA_PATH / 'test.csv')  #= data


def run():
    train, test = read_frames()  #= data
    x_tr, x_va, y_tr, y_va = train_test_split(train.text, train.author, test_size=0.15, random_state=3, stratify=train.author)
    pipe = make_pipeline(TfidfVectorizer(), MultinomialNB())  #= model
    grid = {
        'tfidfvectorizer__ngram_range': [(1, 1), (1, 2)],
        'multinomialnb__alpha': [0.01, 0.05, 0.1],
    }
    search = GridSearchCV(pipe, grid, scoring='neg_log_loss', cv=3, n_jobs=2)  #= model
    search.fit(x_tr, y_tr)  #= trained
    logger.info('best params: %s', search.best_params_)
    logger.info('cv log loss: %.4f', -search.best_score_)  #= test-loss
    logger.info('train log loss: %.4f', log_loss(y_tr, search.predict_proba(x_tr)))  #= train-loss
    logger.info('valid log loss: %.4f', log_loss(y_va, search.predict_proba(x_va)))  #= test-loss

    best = search.best_estimator_
    best.fit(train.text, train.author)  #= trained
    out = pd.DataFrame(best.predict_proba(test.text), columns=best.classes_, index=test.id)  #= predicted
    out.reset_index().to_csv('submission.csv', index=False)


if __name__ == '__main__':
    run()  #= data?, model?, trained?, train-loss?, test-loss?, predicted?
