import pandas as pd
import numpy as np
from sklearn.svm import LinearSVC
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.pipeline import make_pipeline
from sklearn.model_selection import train_test_split
from sklearn import metrics  #= packages

data_path = '/workdir/detecting-insults-in-social-commentary/prepared/public/'
train = pd.read_csv(data_path + 'train.csv')  #= data
test = pd.read_csv(data_path + 'test.csv')  #= data
sample = pd.read_csv(data_path + 'sample_submission_null.csv')

X_tr, X_te, y_tr, y_te = train_test_split(train.Comment, train.Insult, test_size=.15, random_state=3)

base = LinearSVC(C=0.5)  #= model?
model = make_pipeline(HashingVectorizer(ngram_range=(1, 2), n_features=2**18), TfidfTransformer(), CalibratedClassifierCV(base, cv=3))  #= model
model.fit(X_tr, y_tr)  #= trained

for name, a, b in [('train', X_tr, y_tr), ('test', X_te, y_te)]:
    p = model.predict_proba(a)[:, 1]
    print(name, 'auc', metrics.roc_auc_score(b, p), 'logloss', metrics.log_loss(b, p))  #= train-loss?, test-loss?

fpr, tpr, thr = metrics.roc_curve(y_te, model.predict_proba(X_te)[:, 1])
print('area', metrics.auc(fpr, tpr))  #= test-loss

sample['Insult'] = model.predict_proba(test.Comment)[:, 1]  #= predicted
sample.to_csv('submission.csv', index=False)
