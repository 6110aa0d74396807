import numpy as np
import pandas as pd
from hyperopt import fmin, tpe, hp, Trials, STATUS_OK
from xgboost import XGBClassifier
from sklearn.model_selection import cross_val_score
from sklearn.metrics import roc_auc_score  #= packages

tr = pd.read_json('/workdir/random-acts-of-pizza/prepared/public/train.json')  #= data
te = pd.read_json('/workdir/random-acts-of-pizza/prepared/public/test.json')  #= data

cols = ['requester_account_age_in_days_at_request', 'requester_days_since_first_post_on_raop_at_request',
        'requester_number_of_comments_at_request', 'requester_number_of_posts_at_request', 'unix_timestamp_of_request']
for d in (tr, te):
    d['len'] = d['request_text_edit_aware'].str.len()
    d['title_len'] = d['request_title'].str.len()
cols += ['len', 'title_len']
X, y = tr[cols], tr['requester_received_pizza'].astype(int)

space = {
    'max_depth': hp.choice('max_depth', [3, 4, 5, 6]),
    'learning_rate': hp.loguniform('learning_rate', -4, -1),
    'n_estimators': hp.choice('n_estimators', [100, 200, 400]),
}

def objective(params):
    clf = XGBClassifier(**params, eval_metric='auc')  #= model
    auc = cross_val_score(clf, X, y, cv=4, scoring='roc_auc').mean()  #= test-loss, trained?
    return {'loss': -auc, 'status': STATUS_OK}

trials = Trials()
best = fmin(objective, space, algo=tpe.suggest, max_evals=20, trials=trials)  #= test-loss, model?, trained?
print('best', best, 'cv auc', -min(trials.losses()))  #= test-loss

final = XGBClassifier(max_depth=[3, 4, 5, 6][best['max_depth']], learning_rate=best['learning_rate'],
                      n_estimators=[100, 200, 400][best['n_estimators']])  #= model
final.fit(X, y)  #= trained
print('train auc', roc_auc_score(y, final.predict_proba(X)[:, 1]))  #= train-loss
te['requester_received_pizza'] = final.predict_proba(te[cols])[:, 1]  #= predicted
te[['request_id', 'requester_received_pizza']].to_csv('submission.csv', index=False)
