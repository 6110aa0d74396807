import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.metrics import mean_squared_error  #= packages

train = pd.read_csv('train.csv')  #= data
test = pd.read_csv('test.csv')  #= data
X = train.drop(['id', 'score'], axis=1)
y = train['score']
model = RandomForestRegressor(n_estimators=100, random_state=42)  #= model
model.fit(X, y)  #= trained
print('Training MSE:', mean_squared_error(y, model.predict(X)))  #= train-loss
test['score'] = model.predict(test.drop('id', axis=1))  #= predicted
test[['id', 'score']].to_csv('submission.csv', index=False)
