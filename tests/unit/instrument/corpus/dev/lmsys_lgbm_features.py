import pandas as pd
import numpy as np
from lightgbm import LGBMClassifier, early_stopping, log_evaluation
from sklearn.model_selection import train_test_split
from sklearn.metrics import log_loss  #= packages

train = pd.read_csv('/workdir/lmsys-chatbot-arena/prepared/public/train.csv')  #= data
test = pd.read_csv('/workdir/lmsys-chatbot-arena/prepared/public/test.csv')  #= data


def get_label(row):
    if row['winner_model_a'] == 1:
        return 0
    elif row['winner_model_b'] == 1:
        return 1
    return 2


def make_features(df):
    feats = pd.DataFrame(index=df.index)
    feats['len_a'] = df['response_a'].str.len()
    feats['len_b'] = df['response_b'].str.len()
    feats['len_prompt'] = df['prompt'].str.len()
    feats['diff'] = feats['len_a'] - feats['len_b']
    feats['ratio'] = feats['len_a'] / (feats['len_b'] + 1)
    return feats


train['label'] = train.apply(get_label, axis=1)
X = make_features(train)
y = train['label']
X_test = make_features(test)

X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.1, stratify=y, random_state=2024)

model = LGBMClassifier(objective='multiclass', n_estimators=2000, learning_rate=0.03)  #= model
model.fit(
    X_train,
    y_train,
    eval_set=[(X_val, y_val)],
    eval_metric='multi_logloss',
    callbacks=[early_stopping(50), log_evaluation(50)],
)  #= trained, test-loss?

print('best score:', model.best_score_['valid_0']['multi_logloss'])  #= test-loss
print('train logloss:', log_loss(y_train, model.predict_proba(X_train)))  #= train-loss

pred = model.predict_proba(X_test)  #= predicted
sub = pd.DataFrame({'id': test['id'], 'winner_model_a': pred[:, 0], 'winner_model_b': pred[:, 1], 'winner_tie': pred[:, 2]})
sub.to_csv('submission.csv', index=False)
