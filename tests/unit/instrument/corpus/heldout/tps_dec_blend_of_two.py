import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold
from sklearn.metrics import accuracy_score
from sklearn.preprocessing import LabelEncoder
from lightgbm import LGBMClassifier
from catboost import CatBoostClassifier  #= packages

N_FOLDS = 3
TARGET = "Cover_Type"

def reduce_mem(df):
    for col in df.select_dtypes("int64").columns:
        df[col] = pd.to_numeric(df[col], downcast="integer")
    return df

train = reduce_mem(pd.read_csv("/workdir/tabular-playground-series-dec-2021/prepared/public/train.csv"))  #= data
test = reduce_mem(pd.read_csv("/workdir/tabular-playground-series-dec-2021/prepared/public/test.csv"))  #= data
train = train[train[TARGET] != 5].reset_index(drop=True)
enc = LabelEncoder()
y = enc.fit_transform(train[TARGET])
FEATURES = [c for c in train.columns if c not in ("Id", TARGET)]

lgb_pred = np.zeros((len(test), len(enc.classes_)))
cat_pred = np.zeros((len(test), len(enc.classes_)))
for fold, (trn_idx, val_idx) in enumerate(StratifiedKFold(N_FOLDS, shuffle=True, random_state=1).split(train, y)):
    x_trn, y_trn = train[FEATURES].iloc[trn_idx], y[trn_idx]
    x_val, y_val = train[FEATURES].iloc[val_idx], y[val_idx]

    m1 = LGBMClassifier(n_estimators=400)  #= model
    m1.fit(x_trn, y_trn)  #= trained
    m2 = CatBoostClassifier(iterations=400, verbose=0)  #= model
    m2.fit(x_trn, y_trn)  #= trained

    p = 0.5 * m1.predict_proba(x_val) + 0.5 * m2.predict_proba(x_val)
    print("Fold", fold, "accuracy:", accuracy_score(y_val, p.argmax(axis=1)))  #= test-loss
    lgb_pred += m1.predict_proba(test[FEATURES]) / N_FOLDS  #= predicted
    cat_pred += m2.predict_proba(test[FEATURES]) / N_FOLDS  #= predicted

labels = enc.inverse_transform((lgb_pred + cat_pred).argmax(axis=1))
pd.DataFrame({"Id": test["Id"], TARGET: labels}).to_csv("submission.csv", index=False)
