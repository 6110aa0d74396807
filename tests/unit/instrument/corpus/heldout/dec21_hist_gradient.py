import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split
import time  #= packages

start = time.time()
train = pd.read_csv('/workdir/tabular-playground-series-dec-2021/prepared/public/train.csv')  #= data
test = pd.read_csv('/workdir/tabular-playground-series-dec-2021/prepared/public/test.csv')  #= data
print('loaded in', time.time() - start)

# reduce memory
for c in train.columns:
    if train[c].dtype == 'int64':
        train[c] = pd.to_numeric(train[c], downcast='integer')

X = train.drop(['Id', 'Cover_Type'], axis=1)
y = train['Cover_Type']
x_train, x_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=10)
hgb = HistGradientBoostingClassifier(max_iter=200).fit(x_train, y_train)  #= model, trained
print(f'Training accuracy: {hgb.score(x_train, y_train)}')  #= train-loss
print(f'Testing accuracy: {hgb.score(x_test, y_test)}')  #= test-loss
y_pred = hgb.predict(test.drop('Id', axis=1))  #= predicted
submission = pd.DataFrame({'Id': test['Id'], 'Cover_Type': y_pred})
submission.to_csv('submission.csv', index=False)
