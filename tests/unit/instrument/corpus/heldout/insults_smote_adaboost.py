import pandas as pd
from imblearn.over_sampling import SMOTE
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import AdaBoostClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectKBest, chi2
from sklearn.metrics import roc_auc_score, roc_curve, auc
from sklearn.model_selection import train_test_split  #= packages

train = pd.read_csv('/workdir/detecting-insults-in-social-commentary/prepared/public/train.csv')  #= data
test = pd.read_csv('/workdir/detecting-insults-in-social-commentary/prepared/public/test.csv')  #= data

tfidf = TfidfVectorizer(ngram_range=(1, 2), stop_words='english')
X = tfidf.fit_transform(train['Comment'])
selector = SelectKBest(chi2, k=2000)
X = selector.fit_transform(X, train['Insult'])
svd = TruncatedSVD(n_components=150, random_state=0)
X = svd.fit_transform(X)
X_submit = svd.transform(selector.transform(tfidf.transform(test['Comment'])))

x_train, x_test, y_train, y_test = train_test_split(X, train['Insult'], test_size=0.2, random_state=0)
x_res, y_res = SMOTE(random_state=0).fit_resample(x_train, y_train)

ada = AdaBoostClassifier(n_estimators=200, learning_rate=0.5)  #= model
ada.fit(x_res, y_res)  #= trained
train_score = ada.score(x_res, y_res)  #= train-loss
fpr, tpr, _ = roc_curve(y_test, ada.predict_proba(x_test)[:, 1])
test_auc = auc(fpr, tpr)  #= test-loss
print('Train accuracy: {:.3f}  Test AUC: {:.3f}'.format(train_score, test_auc))  #= train-loss, test-loss

test['Insult'] = ada.predict_proba(X_submit)[:, 1]  #= predicted
test[['Insult', 'Date', 'Comment']].to_csv('submission.csv', index=False)
