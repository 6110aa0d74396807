import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.metrics import cohen_kappa_score, mean_squared_error
from sklearn.model_selection import train_test_split  #= packages

def quadratic_weighted_kappa(y_true, y_pred):
    return cohen_kappa_score(y_true, y_pred, weights='quadratic')

def extract_features(df):
    feats = pd.DataFrame()
    feats['char_count'] = df['full_text'].str.len()
    feats['word_count'] = df['full_text'].str.split().str.len()
    feats['sentence_count'] = df['full_text'].str.count(r'[.!?]')
    feats['paragraph_count'] = df['full_text'].str.count('\n\n') + 1
    feats['comma_count'] = df['full_text'].str.count(',')
    feats['avg_word_len'] = feats['char_count'] / feats['word_count']
    feats['unique_ratio'] = df['full_text'].apply(lambda t: len(set(t.lower().split())) / max(1, len(t.split())))
    return feats

def apply_thresholds(pred, thresholds):
    return np.digitize(pred, thresholds) + 1

train = pd.read_csv('/workdir/learning-agency-lab-automated-essay-scoring-2/prepared/public/train.csv')  #= data
test = pd.read_csv('/workdir/learning-agency-lab-automated-essay-scoring-2/prepared/public/test.csv')  #= data

X = extract_features(train)
y = train['score']
X_tr, X_va, y_tr, y_va = train_test_split(X, y, test_size=0.2, random_state=42)

gbr = GradientBoostingRegressor(n_estimators=300, learning_rate=0.05, max_depth=4)  #= model
gbr.fit(X_tr, y_tr)  #= trained
tr_pred = gbr.predict(X_tr)
va_pred = gbr.predict(X_va)
print('Train MSE:', mean_squared_error(y_tr, tr_pred))  #= train-loss
print('Val MSE:', mean_squared_error(y_va, va_pred))  #= test-loss

# tune thresholds
thresholds = [1.5, 2.5, 3.5, 4.5, 5.5]
best = quadratic_weighted_kappa(y_va, apply_thresholds(va_pred, thresholds))  #= test-loss
for i in range(5):
    for delta in np.arange(-0.4, 0.41, 0.05):
        cand = list(thresholds)
        cand[i] += delta
        k = quadratic_weighted_kappa(y_va, apply_thresholds(va_pred, sorted(cand)))  #= test-loss
        if k > best:
            best, thresholds = k, sorted(cand)
print('Best thresholds', thresholds, 'QWK', best)  #= test-loss

test_pred = gbr.predict(extract_features(test))  #= predicted
submission = pd.DataFrame({'essay_id': test['essay_id'], 'score': apply_thresholds(test_pred, thresholds)})
submission.to_csv('submission.csv', index=False)
