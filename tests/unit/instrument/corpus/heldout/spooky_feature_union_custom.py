import pandas as pd
import numpy as np
import string
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import Pipeline, FeatureUnion
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import StandardScaler
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate  #= packages


class TextStats(BaseEstimator, TransformerMixin):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.array([[len(t), len(t.split()), sum(c in string.punctuation for c in t)] for t in X])


train = pd.read_csv('/workdir/spooky-author-identification/prepared/public/train.csv')  #= data
test = pd.read_csv('/workdir/spooky-author-identification/prepared/public/test.csv')  #= data

features = FeatureUnion([
    ('tfidf', TfidfVectorizer(ngram_range=(1, 2), min_df=3)),
    ('stats', Pipeline([('calc', TextStats()), ('scale', StandardScaler())])),
])
model = Pipeline([('features', features), ('clf', LogisticRegression(C=10, max_iter=500))])  #= model

cv = cross_validate(model, train['text'], train['author'], cv=5, scoring='neg_log_loss', return_train_score=True)  #= test-loss?, train-loss?, trained?
print('Training log loss:', -cv['train_score'].mean())  #= train-loss
print('Validation log loss:', -cv['test_score'].mean())  #= test-loss

model.fit(train['text'], train['author'])  #= trained
probs = model.predict_proba(test['text'])  #= predicted
sub = pd.DataFrame(probs, columns=model.classes_)
sub.insert(0, 'id', test['id'])
sub.to_csv('submission.csv', index=False)
