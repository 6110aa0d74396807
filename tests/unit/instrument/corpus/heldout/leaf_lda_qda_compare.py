import pandas as pd
import numpy as np
from sklearn.preprocessing import LabelEncoder
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.metrics import accuracy_score, log_loss
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis  #= packages

def encode(train, test):
    le = LabelEncoder().fit(train.species)
    labels = le.transform(train.species)
    classes = list(le.classes_)
    test_ids = test.id
    train = train.drop(['species', 'id'], axis=1)
    test = test.drop(['id'], axis=1)
    return train, labels, test, test_ids, classes

train = pd.read_csv('train.csv')  #= data
test = pd.read_csv('test.csv')  #= data
train, labels, test, test_ids, classes = encode(train, test)

sss = StratifiedShuffleSplit(n_splits=10, test_size=0.2, random_state=23)
for train_index, test_index in sss.split(train, labels):
    X_train, X_test = train.values[train_index], train.values[test_index]
    y_train, y_test = labels[train_index], labels[test_index]

classifiers = [
    KNeighborsClassifier(3),
    DecisionTreeClassifier(),
    LinearDiscriminantAnalysis(),
]  #= model

log = []
for clf in classifiers:
    clf.fit(X_train, y_train)  #= trained
    name = clf.__class__.__name__
    print("=" * 30)
    print(name)
    train_predictions = clf.predict(X_test)
    acc = accuracy_score(y_test, train_predictions)  #= test-loss
    print("Accuracy: {:.4%}".format(acc))
    ll = log_loss(y_test, clf.predict_proba(X_test))
    print("Log Loss: {}".format(ll))
    log.append([name, acc * 100, ll])

favorite_clf = LinearDiscriminantAnalysis()  #= model
favorite_clf.fit(X_train, y_train)  #= trained
test_predictions = favorite_clf.predict_proba(test)  #= predicted
submission = pd.DataFrame(test_predictions, columns=classes)
submission.insert(0, 'id', test_ids)
submission.reset_index()
submission.to_csv('submission.csv', index=False)
