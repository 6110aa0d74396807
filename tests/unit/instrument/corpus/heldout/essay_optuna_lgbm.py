import optuna
import numpy as np
import pandas as pd
import lightgbm as lgb
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import cohen_kappa_score
from sklearn.model_selection import train_test_split  #= packages

train = pd.read_csv('train.csv')  #= data
test = pd.read_csv('test.csv')  #= data
vec = TfidfVectorizer(max_features=2000)
X = vec.fit_transform(train['full_text']).toarray()
X_test = vec.transform(test['full_text']).toarray()
y = train['score'].values
X_tr, X_val, y_tr, y_val = train_test_split(X, y, test_size=0.2, random_state=42)

def objective(trial):
    params = {
        'num_leaves': trial.suggest_int('num_leaves', 8, 128),
        'learning_rate': trial.suggest_float('learning_rate', 0.01, 0.3, log=True),
        'n_estimators': trial.suggest_int('n_estimators', 50, 500),
    }
    model = lgb.LGBMRegressor(**params)  #= model
    model.fit(X_tr, y_tr)  #= trained
    pred = np.clip(model.predict(X_val).round(), 1, 6)
    return cohen_kappa_score(y_val, pred, weights='quadratic')

study = optuna.create_study(direction='maximize')
study.optimize(objective, n_trials=20)  #= model, trained, test-loss
print('Best value:', study.best_value)  #= test-loss

final_model = lgb.LGBMRegressor(**study.best_params)  #= model
final_model.fit(X, y)  #= trained
preds = final_model.predict(X_test)  #= predicted
preds = np.clip(np.round(preds), 1, 6).astype(int)
pd.DataFrame({'essay_id': test['essay_id'], 'score': preds}).to_csv('submission.csv', index=False)
