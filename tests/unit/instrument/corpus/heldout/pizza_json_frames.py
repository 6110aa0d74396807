import json
import re
import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score, StratifiedKFold
from sklearn.metrics import roc_auc_score  #= packages

base = '/workdir/random-acts-of-pizza/prepared/public'

def load(fn):
    with open(f'{base}/{fn}') as f:
        return pd.DataFrame(json.load(f))  #= data

df_train = load('train.json')  #= data
df_test = load('test.json')  #= data

def make_features(df):
    out = pd.DataFrame(index=df.index)
    txt = df['request_title'].fillna('') + ' ' + df['request_text_edit_aware'].fillna('')
    out['n_words'] = txt.apply(lambda s: len(s.split()))
    out['has_link'] = txt.apply(lambda s: int(bool(re.search(r'https?://|imgur', s))))
    out['thanks'] = txt.str.contains('thank', case=False).astype(int)
    for col in ['requester_account_age_in_days_at_request', 'requester_number_of_comments_at_request',
                'requester_upvotes_minus_downvotes_at_request']:
        out[col] = df[col]
    out['hour'] = pd.to_datetime(df['unix_timestamp_of_request_utc'], unit='s').dt.hour
    return out.fillna(0)

X = make_features(df_train)
X_test = make_features(df_test)
y = df_train['requester_received_pizza'].astype(int)

clf = RandomForestClassifier(n_estimators=500, min_samples_leaf=5, class_weight='balanced', random_state=1)  #= model
cv = StratifiedKFold(5, shuffle=True, random_state=1)
scores = cross_val_score(clf, X, y, cv=cv, scoring='roc_auc')  #= test-loss, trained?
print('CV AUC: {:.4f} +- {:.4f}'.format(scores.mean(), scores.std()))  #= test-loss
clf.fit(X, y)  #= trained
print('Train AUC:', roc_auc_score(y, clf.predict_proba(X)[:, 1]))  #= train-loss

sub = pd.DataFrame({'request_id': df_test['request_id'], 'requester_received_pizza': clf.predict_proba(X_test)[:, 1]})  #= predicted
sub.to_csv('submission.csv', index=False)
