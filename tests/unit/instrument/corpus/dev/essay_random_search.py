from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import randint, uniform
from sklearn.ensemble import RandomForestRegressor
from sklearn.metrics import cohen_kappa_score, make_scorer
from sklearn.model_selection import RandomizedSearchCV, train_test_split  #= packages

DATA = Path("/workdir/learning-agency-lab-automated-essay-scoring-2/prepared/public")


def qwk(y_true, y_pred):
    return cohen_kappa_score(y_true, np.round(y_pred).astype(int), weights="quadratic")


def text_stats(s: pd.Series) -> pd.DataFrame:
    return pd.DataFrame({
        "chars": s.str.len(),
        "words": s.str.split().apply(len),
        "sents": s.str.count(r"[.!?]"),
        "commas": s.str.count(","),
    })


train = pd.read_csv(DATA / "train.csv")  #= data
test = pd.read_csv(DATA / "test.csv")  #= data
X, y = text_stats(train["full_text"]), train["score"]

X_dev, X_hold, y_dev, y_hold = train_test_split(X, y, test_size=0.2, random_state=0)
search = RandomizedSearchCV(
    RandomForestRegressor(),
    {"n_estimators": randint(50, 300), "max_depth": randint(3, 12), "max_features": uniform(0.3, 0.7)},
    n_iter=10,
    scoring=make_scorer(qwk),
    cv=3,
    random_state=0,
)  #= model
search.fit(X_dev, y_dev)  #= trained
print("best cv qwk", search.best_score_, search.best_params_)  #= test-loss

best = search.best_estimator_
print("train qwk", qwk(y_dev, best.predict(X_dev)))  #= train-loss
print("holdout qwk", qwk(y_hold, best.predict(X_hold)))  #= test-loss

best.fit(X, y)  #= trained
test["score"] = np.clip(np.round(best.predict(text_stats(test["full_text"]))), 1, 6).astype(int)  #= predicted
test[["essay_id", "score"]].to_csv("submission.csv", index=False)
