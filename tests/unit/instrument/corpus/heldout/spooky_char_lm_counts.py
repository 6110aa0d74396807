import pandas as pd
import numpy as np
import time
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.metrics import log_loss, confusion_matrix  #= packages

t = time.time()
tr = pd.read_csv('train.csv')  #= data
te = pd.read_csv('test.csv')  #= data
print('Data loaded in %.1fs' % (time.time() - t))
mapping = {'EAP': 0, 'HPL': 1, 'MWS': 2}
labels = tr.author.map(mapping).values
a, b, la, lb = train_test_split(tr.text.values, labels, stratify=labels, test_size=0.1, shuffle=True)
cv = CountVectorizer(analyzer='char', ngram_range=(1, 5))
fa = cv.fit_transform(a)
fb = cv.transform(b)
best = (9, None)
for alpha in [0.001, 0.01, 0.1]:
    nb = MultinomialNB(alpha=alpha).fit(fa, la)  #= model, trained
    ll_a = log_loss(la, nb.predict_proba(fa))  #= train-loss
    ll_b = log_loss(lb, nb.predict_proba(fb))  #= test-loss
    print(alpha, ll_a, ll_b)
    if ll_b < best[0]:
        best = (ll_b, nb)
print(confusion_matrix(lb, best[1].predict(fb)))
probs = best[1].predict_proba(cv.transform(te.text.values))  #= predicted
res = pd.DataFrame(probs, columns=list(mapping))
res.insert(0, 'id', te.id)
res.to_csv('submission.csv', index=False)
