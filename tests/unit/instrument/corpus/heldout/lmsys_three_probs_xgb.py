import pandas as pd
import numpy as np
import xgboost as xgb
from sklearn.model_selection import train_test_split
from sklearn.metrics import log_loss  #= packages

train_df = pd.read_csv('/workdir/lmsys-chatbot-arena/prepared/public/train.csv')  #= data
test_df = pd.read_csv('/workdir/lmsys-chatbot-arena/prepared/public/test.csv')  #= data

def get_winner(row):
    if row['winner_model_a'] == 1:
        return 0
    elif row['winner_model_b'] == 1:
        return 1
    else:
        return 2

def create_features(df):
    df['prompt_len'] = df['prompt'].apply(len)
    df['response_a_len'] = df['response_a'].apply(len)
    df['response_b_len'] = df['response_b'].apply(len)
    df['len_diff'] = df['response_a_len'] - df['response_b_len']
    df['len_ratio'] = df['response_a_len'] / (df['response_b_len'] + 1)
    return df[['prompt_len', 'response_a_len', 'response_b_len', 'len_diff', 'len_ratio']]

train_df['label'] = train_df.apply(get_winner, axis=1)
X = create_features(train_df)
y = train_df['label']
X_test = create_features(test_df)
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, random_state=42)

params = {'objective': 'multi:softprob', 'num_class': 3, 'eval_metric': 'mlogloss', 'max_depth': 6, 'eta': 0.1}
clf = xgb.XGBClassifier(**params, n_estimators=300)  #= model
clf.fit(X_train, y_train, eval_set=[(X_train, y_train), (X_val, y_val)], verbose=50)  #= trained, train-loss?, test-loss?

print('Training loss:', log_loss(y_train, clf.predict_proba(X_train)))  #= train-loss
print('Validation loss:', log_loss(y_val, clf.predict_proba(X_val)))  #= test-loss

probs = clf.predict_proba(X_test)  #= predicted
submission = pd.DataFrame({
    'id': test_df['id'],
    'winner_model_a': probs[:, 0],
    'winner_model_b': probs[:, 1],
    'winner_tie': probs[:, 2],
})
submission.to_csv('submission.csv', index=False)
