import numpy as np
import pandas as pd
import lightgbm as lgb
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import StratifiedKFold
from sklearn.metrics import cohen_kappa_score  #= packages

PATH = '/workdir/learning-agency-lab-automated-essay-scoring-2/prepared/public/'
train = pd.read_csv(PATH + 'train.csv')  #= data
test = pd.read_csv(PATH + 'test.csv')  #= data

def add_features(df):
    df['n_chars'] = df['full_text'].str.len()
    df['n_words'] = df['full_text'].str.split().str.len()
    df['n_para'] = df['full_text'].str.count('\n\n') + 1
    return df

train = add_features(train)
test = add_features(test)
feats = ['n_chars', 'n_words', 'n_para']

params = {'objective': 'regression', 'metric': 'rmse', 'learning_rate': 0.05, 'num_leaves': 31, 'verbose': -1}

oof = np.zeros(len(train))
test_preds = np.zeros(len(test))
skf = StratifiedKFold(n_splits=5, shuffle=True, random_state=42)

for fold, (tr_idx, va_idx) in enumerate(skf.split(train, train['score'])):
    print(f'Fold {fold + 1}')
    dtrain = lgb.Dataset(train.loc[tr_idx, feats], label=train.loc[tr_idx, 'score'])
    dvalid = lgb.Dataset(train.loc[va_idx, feats], label=train.loc[va_idx, 'score'], reference=dtrain)
    model = lgb.train(
        params,
        dtrain,
        num_boost_round=2000,
        valid_sets=[dtrain, dvalid],
        callbacks=[lgb.early_stopping(100), lgb.log_evaluation(100)],
    )  #= model, trained, train-loss?, test-loss?
    oof[va_idx] = model.predict(train.loc[va_idx, feats], num_iteration=model.best_iteration)
    test_preds += model.predict(test[feats], num_iteration=model.best_iteration) / skf.n_splits  #= predicted

oof_round = np.clip(np.round(oof), 1, 6).astype(int)
qwk = cohen_kappa_score(train['score'], oof_round, weights='quadratic')  #= test-loss
print('OOF QWK:', qwk)

sub = pd.DataFrame({'essay_id': test['essay_id'], 'score': np.clip(np.round(test_preds), 1, 6).astype(int)})
sub.to_csv('submission.csv', index=False)
