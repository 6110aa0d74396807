import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn import ensemble, model_selection  #> 1

train = pd.read_csv("train.csv")  #> 2
test = pd.read_csv("test.csv")  #> 2
numeric = Pipeline([("impute", SimpleImputer()), ("scale", StandardScaler())])
categorical = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder())
pre = ColumnTransformer([("n", numeric, ["a"]), ("c", categorical, ["b"])])
pre.fit(train, train["y"])
pipe = Pipeline([("pre", pre), ("rf", ensemble.RandomForestClassifier())])  #> 3
search = model_selection.GridSearchCV(pipe, {"rf__max_depth": [3, 5]}, cv=3)  #> 3
search.fit(train.drop(columns="y"), train["y"])  #> 5
print("best cv score", search.best_score_)  #> 6
best = search.best_estimator_
labels = best.predict(test)  #> 7
