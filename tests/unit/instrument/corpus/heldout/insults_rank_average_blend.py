import pandas as pd
import numpy as np
from scipy.stats import rankdata
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.svm import LinearSVC
from sklearn.naive_bayes import BernoulliNB
from sklearn.model_selection import StratifiedKFold
from sklearn.metrics import roc_auc_score  #= packages

d = '/workdir/detecting-insults-in-social-commentary/prepared/public/'
train, test = pd.read_csv(d + 'train.csv'), pd.read_csv(d + 'test.csv')  #= data
y = train.Insult.values

vw = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2))
vc = TfidfVectorizer(sublinear_tf=True, analyzer='char_wb', ngram_range=(2, 5), min_df=3)
views = {'word': (vw.fit_transform(train.Comment), vw.transform(test.Comment)),
         'char': (vc.fit_transform(train.Comment), vc.transform(test.Comment))}

def scores_of(clf, X):
    if hasattr(clf, 'predict_proba'):
        return clf.predict_proba(X)[:, 1]
    return clf.decision_function(X)

oof, sub = {}, {}
skf = StratifiedKFold(5, shuffle=True, random_state=12)
for view, (X, X_sub) in views.items():
    for make in (LogisticRegression, LinearSVC, RidgeClassifier, BernoulliNB):
        key = view + '_' + make.__name__
        oof[key] = np.zeros(len(y))
        for tr, va in skf.split(X, y):
            clf = make()  #= model
            clf.fit(X[tr], y[tr])  #= trained
            oof[key][va] = scores_of(clf, X[va])
        print(key, roc_auc_score(y, oof[key]))  #= test-loss
        clf = make().fit(X, y)  #= model, trained
        sub[key] = scores_of(clf, X_sub)  #= predicted

blend = sum(rankdata(v) for v in oof.values())
print('blend', roc_auc_score(y, blend))  #= test-loss
answer = sum(rankdata(v) for v in sub.values())  #= predicted
test['Insult'] = (answer - answer.min()) / (answer.max() - answer.min())
test[['Insult', 'Date', 'Comment']].to_csv('submission.csv', index=False)
