import pandas as pd
from sklearn.ensemble import RandomForestClassifier, ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score, log_loss  #= packages

train = pd.read_csv('/workdir/tabular-playground-series-dec-2021/prepared/public/train.csv', nrows=200000)  #= data
test = pd.read_csv('/workdir/tabular-playground-series-dec-2021/prepared/public/test.csv')  #= data

X = train.drop(['Id', 'Cover_Type'], axis=1)
y = train['Cover_Type']
X_test = test.drop('Id', axis=1)
X_train, X_valid, y_train, y_valid = train_test_split(X, y, test_size=0.2, random_state=0)

models = {  #= model
    'logreg': LogisticRegression(max_iter=300),
    'tree': DecisionTreeClassifier(max_depth=15),
    'rf': RandomForestClassifier(n_estimators=100, n_jobs=-1),
    'et': ExtraTreesClassifier(n_estimators=100, n_jobs=-1),
}

best_name, best_acc = None, 0
for name, clf in models.items():
    clf.fit(X_train, y_train)  #= trained
    tr_acc = accuracy_score(y_train, clf.predict(X_train))  #= train-loss
    va_acc = accuracy_score(y_valid, clf.predict(X_valid))  #= test-loss
    print(f'{name:10s} train acc {tr_acc:.4f}  valid acc {va_acc:.4f}')
    if va_acc > best_acc:
        best_name, best_acc = name, va_acc

print('Best model is', best_name)
final_model = models[best_name]
final_model.fit(X, y)  #= trained
test['Cover_Type'] = final_model.predict(X_test)  #= predicted
test[['Id', 'Cover_Type']].to_csv('submission.csv', index=False)
