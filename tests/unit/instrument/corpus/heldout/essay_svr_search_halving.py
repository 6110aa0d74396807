import warnings
import numpy as np
import pandas as pd
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import cohen_kappa_score, make_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

warnings.filterwarnings("ignore")
from tqdm.auto import tqdm  #= packages
tqdm.pandas()

train = pd.read_csv("/workdir/learning-agency-lab-automated-essay-scoring-2/prepared/public/train.csv")  #= data
test = pd.read_csv("/workdir/learning-agency-lab-automated-essay-scoring-2/prepared/public/test.csv")  #= data
train["full_text"] = train["full_text"].progress_apply(lambda t: t.lower())
test["full_text"] = test["full_text"].progress_apply(lambda t: t.lower())

def kappa(y, p):
    return cohen_kappa_score(y, np.clip(np.rint(p), 1, 6).astype(int), weights="quadratic")

pipe = Pipeline([
    ("tfidf", TfidfVectorizer(min_df=3)),
    ("svd", TruncatedSVD(100)),
    ("sc", StandardScaler()),
    ("svr", SVR()),
])  #= model
gs = GridSearchCV(pipe, {"svr__C": [0.5, 1, 5]}, scoring=make_scorer(kappa), cv=3, verbose=1)  #= model
gs.fit(train["full_text"], train["score"])  #= trained
print(pd.DataFrame(gs.cv_results_)[["params", "mean_test_score"]])  #= test-loss
print("Best:", gs.best_score_)  #= test-loss
print("Train kappa:", kappa(train["score"], gs.predict(train["full_text"])))  #= train-loss
test["score"] = np.clip(np.rint(gs.predict(test["full_text"])), 1, 6).astype(int)  #= predicted
test[["essay_id", "score"]].to_csv("submission.csv", index=False)
