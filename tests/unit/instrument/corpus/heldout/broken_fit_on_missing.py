import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import roc_auc_score  #= packages

train = pd.read_csv('/workdir/detecting-insults-in-social-commentary/train.csv')  #= data
test = pd.read_csv('/workdir/detecting-insults-in-social-commentary/test.csv')  #= data
vectorizer = TfidfVectorizer()
X_train = vectorizer.fit_transform(train['comment_text'])
X_test = vectorizer.transform(test['comment_text'])
y_train = train['insult']
classifier = LogisticRegression()  #= model
classifier.fit(X_train, y_train)  #= trained
predictions = classifier.predict(X_test)  #= predicted
y_test = test['insult']
print('AUC:', roc_auc_score(y_test, predictions))  #= test-loss
submission = pd.DataFrame({'Insult': predictions})
submission.to_csv('submission.csv')
