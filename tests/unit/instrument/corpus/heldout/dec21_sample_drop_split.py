import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import accuracy_score, log_loss  #= packages

path = '/workdir/tabular-playground-series-dec-2021/prepared/public/'
df = pd.read_csv(path + 'train.csv')  #= data
submission_data = pd.read_csv(path + 'test.csv')  #= data

train_set = df.sample(frac=0.8, random_state=200)
valid_set = df.drop(train_set.index)
feature_cols = [c for c in df.columns if c not in ['Id', 'Cover_Type']]

forest = RandomForestClassifier(n_estimators=120, max_depth=20, n_jobs=-1)  #= model
forest.fit(train_set[feature_cols], train_set['Cover_Type'])  #= trained

pred_train = forest.predict(train_set[feature_cols])
pred_valid = forest.predict(valid_set[feature_cols])
print('train accuracy = ', accuracy_score(train_set['Cover_Type'], pred_train))  #= train-loss
print('valid accuracy = ', accuracy_score(valid_set['Cover_Type'], pred_valid))  #= test-loss

result = forest.predict(submission_data[feature_cols])  #= predicted
output = pd.DataFrame({'Id': submission_data.Id, 'Cover_Type': result})
output.to_csv('submission.csv', index=False)
