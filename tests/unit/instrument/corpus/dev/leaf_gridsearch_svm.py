import pandas as pd
from sklearn.preprocessing import LabelEncoder, StandardScaler
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit
from sklearn.metrics import log_loss  #= packages

train = pd.read_csv('/workdir/leaf-classification/prepared/public/train.csv')  #= data
test = pd.read_csv('/workdir/leaf-classification/prepared/public/test.csv')  #= data

le = LabelEncoder().fit(train.species)
labels = le.transform(train.species)
test_ids = test.id
X = train.drop(['species', 'id'], axis=1)
X_sub = test.drop(['id'], axis=1)

sss = StratifiedShuffleSplit(n_splits=1, test_size=0.2, random_state=23)
for train_index, test_index in sss.split(X, labels):
    X_train, X_test = X.values[train_index], X.values[test_index]
    y_train, y_test = labels[train_index], labels[test_index]

pipe = make_pipeline(StandardScaler(), SVC(probability=True))  #= model
param_grid = {'svc__C': [1, 10, 100], 'svc__gamma': ['scale', 0.01, 0.001]}
grid = GridSearchCV(pipe, param_grid, cv=3, scoring='neg_log_loss', n_jobs=-1)  #= model
grid.fit(X_train, y_train)  #= trained

print(grid.best_params_)
print('Best CV score', -grid.best_score_)  #= test-loss
print('Hold-out log loss', log_loss(y_test, grid.predict_proba(X_test)))  #= test-loss

probs = grid.predict_proba(X_sub)  #= predicted
sub = pd.DataFrame(probs, columns=le.classes_)
sub.insert(0, 'id', test_ids)
sub.to_csv('submission.csv', index=False)
