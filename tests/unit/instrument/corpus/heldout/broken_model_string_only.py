import pandas as pd
import numpy as np
from sklearn.model_selection import train_test_split  #= packages

train = pd.read_json('/workdir/random-acts-of-pizza/prepared/public/train.json')  #= data
test = pd.read_json('/workdir/random-acts-of-pizza/prepared/public/test.json')  #= data
X_train, X_val = train_test_split(train, test_size=0.2)
model = "RandomForestClassifier"
print(f"Training {model} ...")
prior = X_train['requester_received_pizza'].mean()
val_error = np.abs(X_val['requester_received_pizza'] - prior).mean()  #= test-loss?
print('Validation error:', val_error)  #= test-loss?
test['requester_received_pizza'] = prior
test[['request_id', 'requester_received_pizza']].to_csv('submission.csv', index=False)
