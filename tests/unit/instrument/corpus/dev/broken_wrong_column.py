import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.metrics import accuracy_score  #= packages

train = pd.read_csv('/workdir/tabular-playground-series-dec-2021/prepared/public/train.csv')  #= data
test = pd.read_csv('/workdir/tabular-playground-series-dec-2021/prepared/public/test.csv')  #= data

X = train.drop('target', axis=1)
y = train['target']
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2)

rf = RandomForestClassifier()  #= model
rf.fit(X_train, y_train)  #= trained
print(accuracy_score(y_val, rf.predict(X_val)))  #= test-loss
predictions = rf.predict(test)  #= predicted
pd.DataFrame({'Id': test['Id'], 'target': predictions}).to_csv('submission.csv', index=False)
