import pandas as pd
import numpy as np
from difflib import SequenceMatcher
from sklearn.model_selection import GroupKFold
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import mean_squared_error  #= packages

def pearson(a, b):
    return np.corrcoef(a, b)[0, 1]

def featurize(df):
    f = pd.DataFrame()
    f['ratio'] = [SequenceMatcher(None, a, t).ratio() for a, t in zip(df['anchor'], df['target'])]
    f['jaccard'] = [len(set(a.split()) & set(t.split())) / len(set(a.split()) | set(t.split())) for a, t in zip(df['anchor'], df['target'])]
    f['len_diff'] = df['anchor'].str.len() - df['target'].str.len()
    f['section'] = df['context'].str[0].map(ord)
    return f

def train_and_eval(X, y, tr, va, X_test):
    model = HistGradientBoostingRegressor(max_iter=300, learning_rate=0.05)  #= model
    model.fit(X.iloc[tr], y[tr])  #= trained
    train_mse = mean_squared_error(y[tr], model.predict(X.iloc[tr]))  #= train-loss
    val_pred = model.predict(X.iloc[va])
    val_mse = mean_squared_error(y[va], val_pred)  #= test-loss
    return val_pred, model.predict(X_test), train_mse, val_mse  #= predicted

DIR = '/workdir/us-patent-phrase-to-phrase-matching/prepared/public/'
train_df, test_df = pd.read_csv(DIR + 'train.csv'), pd.read_csv(DIR + 'test.csv')  #= data
X, X_test = featurize(train_df), featurize(test_df)
y = train_df['score'].to_numpy()

oof, test_preds = np.zeros(len(y)), []
for i, (tr, va) in enumerate(GroupKFold(5).split(X, y, groups=train_df['anchor'])):
    oof[va], p, tr_loss, va_loss = train_and_eval(X, y, tr, va, X_test)  #= model, trained, train-loss, test-loss, predicted
    test_preds.append(p)
    print(f'fold {i}: train_loss={tr_loss:.4f} val_loss={va_loss:.4f}')  #= train-loss, test-loss

print('oof pearson', pearson(y, oof))  #= test-loss
test_df['score'] = np.mean(test_preds, axis=0)  #= predicted
test_df[['id', 'score']].to_csv('submission.csv', index=False)
