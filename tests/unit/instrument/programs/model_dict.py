import pandas as pd
import xgboost as xgb
from catboost import CatBoostClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score as acc, f1_score
from sklearn.model_selection import train_test_split  #> 1

train_df = pd.read_csv("train.csv")  #> 2
test_df = pd.read_csv("test.csv")  #> 2
X_train, X_test, y_train, y_test = train_test_split(train_df.drop("y", axis=1), train_df["y"])
models = {  #> 3
    "lr": LogisticRegression(),
    "xgb": xgb.XGBClassifier(),
    "cat": CatBoostClassifier(verbose=0),
}
best, best_model = 0, None
for name, m in models.items():
    m.fit(X_train, y_train)  #> 5
    hat = m.predict(X_test)
    s = acc(y_test, hat)  #> 6
    if s > best:
        best, best_model = s, m
train_score = best_model.score(X_train, y_train)  #> 4
final = best_model.predict(test_df)  #> 7
