import numpy as np
import pandas as pd
from catboost import CatBoostClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.metrics import log_loss  #= packages

train = pd.read_csv('/workdir/leaf-classification/prepared/public/train.csv')  #= data
test = pd.read_csv('/workdir/leaf-classification/prepared/public/test.csv')  #= data
y, names = pd.factorize(train['species'], sort=True)
X = train.drop(columns=['id', 'species'])

cv_losses = []
for fold, (i, j) in enumerate(StratifiedKFold(5, shuffle=True).split(X, y)):
    cb = CatBoostClassifier(iterations=300, loss_function='MultiClass', verbose=50)  #= model
    cb.fit(X.iloc[i], y[i], eval_set=(X.iloc[j], y[j]))  #= trained, train-loss?, test-loss?
    cv_losses.append(log_loss(y[j], cb.predict_proba(X.iloc[j])))  #= test-loss
    print(fold, cv_losses[-1])  #= test-loss
print('CV', np.mean(cv_losses))  #= test-loss
# predict the test set with all folds
