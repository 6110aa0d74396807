import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.preprocessing import OrdinalEncoder  #= packages

train = pd.read_csv('train.csv')  #= data
test = pd.read_csv('test.csv')  #= data
enc = OrdinalEncoder(handle_unknown='use_encoded_value', unknown_value=-1)
train[['f_27']] = enc.fit_transform(train[['f_27']])
test[['f_27']] = enc.transform(test[['f_27']])
y = train.pop('target')
rf = RandomForestClassifier(200, oob_score=True, n_jobs=-1, random_state=0)  #= model
rf.fit(train.drop('id', axis=1), y)  #= trained
print('OOB score:', rf.oob_score_)  #= test-loss
test['target'] = rf.predict_proba(test.drop('id', axis=1))[:, 1]  #= predicted
test.to_csv('submission.csv', columns=['id', 'target'], index=False)
