import pandas as pd
from sklearn.metrics import accuracy_score  #= packages

train = pd.read_csv('/workdir/tabular-playground-series-dec-2021/prepared/public/train.csv')  #= data
test = pd.read_csv('/workdir/tabular-playground-series-dec-2021/prepared/public/test.csv')  #= data

most_common = train['Cover_Type'].mode()[0]
print('Most common class:', most_common)
acc = accuracy_score(train['Cover_Type'], [most_common] * len(train))  #= train-loss?
print('Baseline accuracy on training data:', acc)  #= train-loss?

test['Cover_Type'] = most_common
test[['Id', 'Cover_Type']].to_csv('submission.csv', index=False)
