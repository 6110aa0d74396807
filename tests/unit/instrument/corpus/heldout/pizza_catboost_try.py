import pandas as pd
import numpy as np
import sys
from catboost import CatBoostClassifier, Pool
from sklearn.model_selection import train_test_split
from sklearn.metrics import roc_auc_score  #= packages

try:
    train = pd.read_json('/workdir/random-acts-of-pizza/prepared/public/train.json')  #= data
    test = pd.read_json('/workdir/random-acts-of-pizza/prepared/public/test.json')  #= data
except ValueError as err:
    print(f'Could not read the data: {err}')
    sys.exit(1)

num_cols = [c for c in test.columns if test[c].dtype != object and c in train.columns]
train[num_cols] = train[num_cols].fillna(-1)
test[num_cols] = test[num_cols].fillna(-1)
text_cols = ['request_text_edit_aware', 'request_title']

X = train[num_cols + text_cols]
y = train['requester_received_pizza'].astype(int)
X_train, X_valid, y_train, y_valid = train_test_split(X, y, stratify=y, test_size=0.2, random_state=5)

train_pool = Pool(X_train, y_train, text_features=text_cols)
valid_pool = Pool(X_valid, y_valid, text_features=text_cols)
model = CatBoostClassifier(iterations=500, learning_rate=0.05, eval_metric='AUC', verbose=100, random_seed=5)  #= model
model.fit(train_pool, eval_set=valid_pool)  #= trained, train-loss?, test-loss?

print("Train AUC", roc_auc_score(y_train, model.predict_proba(train_pool)[:, 1]))  #= train-loss
print("Valid AUC", roc_auc_score(y_valid, model.predict_proba(valid_pool)[:, 1]))  #= test-loss

test_pool = Pool(test[num_cols + text_cols], text_features=text_cols)
submission = test[['request_id']].copy()
submission['requester_received_pizza'] = model.predict_proba(test_pool)[:, 1]  #= predicted
submission.to_csv('submission.csv', index=False)
