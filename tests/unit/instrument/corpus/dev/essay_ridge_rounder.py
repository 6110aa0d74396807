import pandas as pd, numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge
from sklearn.metrics import cohen_kappa_score, mean_squared_error
from sklearn.model_selection import train_test_split
from scipy.sparse import hstack, csr_matrix
from functools import partial
from scipy.optimize import minimize  #= packages

class OptimizedRounder:
    def __init__(self):
        self.coef_ = None
    def _loss(self, coef, X, y):
        preds = np.digitize(X, np.sort(coef)) + 1
        return -cohen_kappa_score(y, preds, weights='quadratic')
    def fit(self, X, y):
        loss = partial(self._loss, X=X, y=y)
        self.coef_ = minimize(loss, [1.5, 2.5, 3.5, 4.5, 5.5], method='nelder-mead').x
    def predict(self, X):
        return np.digitize(X, np.sort(self.coef_)) + 1

train = pd.read_csv('input/train.csv')  #= data
test = pd.read_csv('input/test.csv')  #= data

tfidf = TfidfVectorizer(ngram_range=(1, 2), max_features=30000, sublinear_tf=True)
Xt = tfidf.fit_transform(train.full_text)
Xs = tfidf.transform(test.full_text)
Xt = hstack([Xt, csr_matrix(train.full_text.str.len().values.reshape(-1, 1) / 1000)]).tocsr()
Xs = hstack([Xs, csr_matrix(test.full_text.str.len().values.reshape(-1, 1) / 1000)]).tocsr()
y = train.score.values

tr, va = train_test_split(np.arange(len(y)), test_size=0.2, random_state=7)
reg = Ridge(alpha=3.0)  #= model
reg.fit(Xt[tr], y[tr])  #= trained
print('train rmse', np.sqrt(mean_squared_error(y[tr], reg.predict(Xt[tr]))))  #= train-loss
val_raw = reg.predict(Xt[va])
print('val rmse', np.sqrt(mean_squared_error(y[va], val_raw)))  #= test-loss

rounder = OptimizedRounder()
rounder.fit(reg.predict(Xt[tr]), y[tr])  #= train-loss?
print('val qwk', cohen_kappa_score(y[va], rounder.predict(val_raw), weights='quadratic'))  #= test-loss

final = rounder.predict(reg.predict(Xs))  #= predicted
pd.DataFrame({'essay_id': test.essay_id, 'score': final}).to_csv('submission.csv', index=False)
