import pandas as pd
import numpy as np
import xgboost as xgb
from sklearn.model_selection import StratifiedKFold
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import log_loss  #= packages

class CFG:
    data = '/workdir/lmsys-chatbot-arena/prepared/public/'
    n_folds = 5
    seed = 42

def read(name):
    return pd.read_csv(CFG.data + name)  #= data

train, test = read('train.csv'), read('test.csv')  #= data
target_cols = ['winner_model_a', 'winner_model_b', 'winner_tie']
train['y'] = train[target_cols].values.argmax(1)

vec = TfidfVectorizer(max_features=20000)
svd = TruncatedSVD(n_components=50, random_state=CFG.seed)
vec.fit(pd.concat([train.response_a, train.response_b]))
svd.fit(vec.transform(train.response_a))
def embed(df):
    return np.hstack([svd.transform(vec.transform(df.response_a)), svd.transform(vec.transform(df.response_b))])
X, X_test = embed(train), embed(test)

params = {'objective': 'multi:softprob', 'num_class': 3, 'eta': 0.05, 'max_depth': 6, 'eval_metric': 'mlogloss', 'seed': CFG.seed}
oof_preds = np.zeros((len(train), 3))
sub_preds = np.zeros((len(test), 3))
dtest = xgb.DMatrix(X_test)
for fold, (trn, val) in enumerate(StratifiedKFold(CFG.n_folds, shuffle=True, random_state=CFG.seed).split(X, train.y)):
    dtrain = xgb.DMatrix(X[trn], label=train.y.values[trn])
    dval = xgb.DMatrix(X[val], label=train.y.values[val])
    evals_result = {}
    bst = xgb.train(params, dtrain, num_boost_round=1000, evals=[(dtrain, 'train'), (dval, 'val')],
                    early_stopping_rounds=50, evals_result=evals_result, verbose_eval=100)  #= model, trained, train-loss?, test-loss?
    print('train', evals_result['train']['mlogloss'][-1])  #= train-loss
    oof_preds[val] = bst.predict(dval)
    print(f'fold {fold}', log_loss(train.y.values[val], oof_preds[val]))  #= test-loss
    sub_preds += bst.predict(dtest) / CFG.n_folds  #= predicted

print('OOF', log_loss(train.y, oof_preds))  #= test-loss
out = pd.DataFrame(sub_preds, columns=target_cols)
out.insert(0, 'id', test.id)
out.to_csv('submission.csv', index=False)
