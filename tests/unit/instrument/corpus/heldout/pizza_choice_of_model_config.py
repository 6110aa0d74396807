import os
import sys
import pandas as pd
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.metrics import log_loss, roc_auc_score  #= packages

CONFIG = {
    'data_dir': '/workdir/random-acts-of-pizza/prepared/public',
    'model': 'gb',
    'seed': 0,
}


def get_model(name):
    if name == 'gb':
        return GradientBoostingClassifier(n_estimators=150)  #= model
    elif name == 'rf':
        return RandomForestClassifier(n_estimators=300)  #= model
    return LogisticRegression()  #= model


def load_split(name):
    file = os.path.join(CONFIG['data_dir'], name + '.json')
    df = pd.read_json(file)  #= data
    df['text_len'] = df['request_text_edit_aware'].fillna('').apply(len)
    return df


COLUMNS = ['text_len', 'requester_account_age_in_days_at_request', 'requester_number_of_subreddits_at_request']
train = load_split('train')  #= data
test = load_split('test')  #= data
X = train[COLUMNS].fillna(0)
y = train['requester_received_pizza'].astype(int)
X_a, X_b, y_a, y_b = train_test_split(X, y, random_state=CONFIG['seed'])
model = get_model(CONFIG['model'])  #= model
model.fit(X_a, y_a)  #= trained
metrics = {
    'train_loss': log_loss(y_a, model.predict_proba(X_a)),
    'val_loss': log_loss(y_b, model.predict_proba(X_b)),
    'val_auc': roc_auc_score(y_b, model.predict_proba(X_b)[:, 1]),
}  #= train-loss, test-loss
for k, v in metrics.items():
    print(f'{k}: {v:.4f}')
test['requester_received_pizza'] = model.predict_proba(test[COLUMNS].fillna(0))[:, 1]  #= predicted
test.to_csv('submission.csv', columns=['request_id', 'requester_received_pizza'], index=False)
