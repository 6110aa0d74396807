import numpy as np
import pandas as pd
import lightgbm as lgb
from sklearn.model_selection import StratifiedKFold
from sklearn.metrics import roc_auc_score, log_loss
import warnings  #= packages
warnings.filterwarnings('ignore')

PATH = '/workdir/tabular-playground-series-may-2022/prepared/public'
train = pd.read_csv(f'{PATH}/train.csv')  #= data
test = pd.read_csv(f'{PATH}/test.csv')  #= data
sub = pd.read_csv(f'{PATH}/sample_submission.csv')

for df in [train, test]:
    for i in range(10):
        df[f'ch{i}'] = df.f_27.str.get(i).apply(ord) - ord('A')
    df['unique_characters'] = df.f_27.apply(lambda s: len(set(s)))

features = [f for f in test.columns if f not in ['id', 'f_27']]
X = train[features]
y = train['target']
X_test = test[features]

oof = np.zeros(len(X))
preds = np.zeros(len(X_test))
folds = StratifiedKFold(n_splits=5, shuffle=True, random_state=2022)
train_losses = []
for fold, (trn_idx, val_idx) in enumerate(folds.split(X, y)):
    print(f'----- Fold {fold + 1} -----')
    X_trn, y_trn = X.iloc[trn_idx], y.iloc[trn_idx]
    X_val, y_val = X.iloc[val_idx], y.iloc[val_idx]
    clf = lgb.LGBMClassifier(n_estimators=2000, learning_rate=0.1, num_leaves=127, min_child_samples=90)  #= model
    clf.fit(X_trn, y_trn, eval_set=[(X_val, y_val)], eval_metric='auc', callbacks=[lgb.early_stopping(50), lgb.log_evaluation(200)])  #= trained, test-loss?
    train_losses.append(log_loss(y_trn, clf.predict_proba(X_trn)[:, 1]))  #= train-loss
    oof[val_idx] = clf.predict_proba(X_val)[:, 1]
    preds += clf.predict_proba(X_test)[:, 1] / folds.n_splits  #= predicted
    print('fold auc', roc_auc_score(y_val, oof[val_idx]))  #= test-loss

print('mean train loss', np.mean(train_losses))  #= train-loss
print('OOF AUC', roc_auc_score(y, oof))  #= test-loss
sub['target'] = preds
sub.to_csv('submission.csv', index=False)
