import warnings
warnings.filterwarnings('ignore')
import pandas as pd
import xgboost as xgb
from sklearn.model_selection import train_test_split
from sklearn.metrics import roc_auc_score  #= packages

train = pd.read_csv('../input/tabular-playground-series-may-2022/train.csv')  #= data
test = pd.read_csv('../input/tabular-playground-series-may-2022/test.csv')  #= data
sub = pd.read_csv('../input/tabular-playground-series-may-2022/sample_submission.csv')

for df in [train, test]:
    for i in range(10):
        df[f'ch{i}'] = df['f_27'].str.get(i).apply(ord) - ord('A')
    df['unique_characters'] = df['f_27'].apply(lambda s: len(set(s)))

features = [c for c in test.columns if c not in ('id', 'f_27')]
X_train, X_valid, y_train, y_valid = train_test_split(train[features], train['target'], test_size=0.2, random_state=42)

params = dict(n_estimators=500, max_depth=8, learning_rate=0.1, tree_method='hist', eval_metric='auc', early_stopping_rounds=50)
model = xgb.XGBClassifier(**params)  #= model
model.fit(X_train, y_train, eval_set=[(X_train, y_train), (X_valid, y_valid)], verbose=100)  #= trained, train-loss?, test-loss?

results = model.evals_result()
print('Final train AUC:', results['validation_0']['auc'][-1])  #= train-loss
print('Final valid AUC:', results['validation_1']['auc'][-1])  #= test-loss

sub['target'] = model.predict_proba(test[features])[:, 1]  #= predicted
sub.to_csv('submission.csv', index=False)
