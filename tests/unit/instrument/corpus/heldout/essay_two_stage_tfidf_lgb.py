import warnings; warnings.filterwarnings("ignore")
import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.metrics import cohen_kappa_score, mean_squared_error
from lightgbm import LGBMRegressor
from scipy.optimize import minimize  #= packages

TRAIN = "/workdir/learning-agency-lab-automated-essay-scoring-2/prepared/public/train.csv"
TEST = "/workdir/learning-agency-lab-automated-essay-scoring-2/prepared/public/test.csv"
df, df_test = pd.read_csv(TRAIN), pd.read_csv(TEST)  #= data

vec = TfidfVectorizer(min_df=5, ngram_range=(1, 3), max_features=50_000)
S, S_test = vec.fit_transform(df.full_text), vec.transform(df_test.full_text)
y = df.score.to_numpy()
skf = StratifiedKFold(5, shuffle=True, random_state=5)

# stage 1
ridge = Ridge(2.0)  #= model
stage1 = cross_val_predict(ridge, S, y, cv=skf)  #= trained?
print("stage 1 rmse", mean_squared_error(y, stage1) ** 0.5)  #= test-loss
stage1_test = ridge.fit(S, y).predict(S_test)  #= trained, predicted

# stage 2
def hand(d, extra):
    t = d.full_text
    return np.c_[extra, t.str.len(), t.str.count(" "), t.str.count("\n"), t.str.count(",")]
H, H_test = hand(df, stage1), hand(df_test, stage1_test)
oof = np.zeros(len(y)); pred = np.zeros(len(H_test))
for tr, va in skf.split(H, y):
    g = LGBMRegressor(n_estimators=300, learning_rate=0.03, verbose=-1).fit(H[tr], y[tr])  #= model, trained
    oof[va] = g.predict(H[va])
    pred += g.predict(H_test) / 5  #= predicted
print("stage 2 rmse", mean_squared_error(y, oof) ** 0.5)  #= test-loss

def neg_qwk(th):
    return -cohen_kappa_score(y, np.digitize(oof, np.sort(th)) + 1, weights="quadratic")
best = minimize(neg_qwk, [1.5, 2.5, 3.5, 4.5, 5.5], method="Powell")  #= test-loss
print("qwk", -best.fun)  #= test-loss
df_test["score"] = np.digitize(pred, np.sort(best.x)) + 1  #= predicted
df_test[["essay_id", "score"]].to_csv("submission.csv", index=False)
