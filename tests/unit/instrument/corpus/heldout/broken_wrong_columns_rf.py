import pandas as pd
import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import train_test_split
from sklearn.metrics import mean_squared_error  #= packages

train_data = pd.read_csv("/workdir/us-patent-phrase-to-phrase-matching/prepared/public/train.csv")  #= data
test_data = pd.read_csv("/workdir/us-patent-phrase-to-phrase-matching/prepared/public/test.csv")  #= data

features = ['anchor_length', 'target_length', 'context_code']
X = train_data[features]
y = train_data['similarity']

X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, random_state=42)

rf = RandomForestRegressor(n_estimators=100)  #= model
rf.fit(X_train, y_train)  #= trained
print("Train RMSE:", mean_squared_error(y_train, rf.predict(X_train), squared=False))  #= train-loss
print("Validation RMSE:", mean_squared_error(y_val, rf.predict(X_val), squared=False))  #= test-loss

test_data['score'] = rf.predict(test_data[features])  #= predicted
test_data[['id', 'score']].to_csv('submission.csv', index=False)
