import pandas as pd
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.model_selection import train_test_split
from sklearn.metrics import roc_auc_score  #= packages

data = pd.read_json("/workdir/random-acts-of-pizza/prepared/public/train.json")  #= data
test = pd.read_json("/workdir/random-acts-of-pizza/prepared/public/test.json")  #= data

target = "requester_received_pizza"
numeric = [c for c in test.columns if c in data.columns and pd.api.types.is_numeric_dtype(data[c]) and c != target]
print("Using", len(numeric), "numeric columns")

X_train, X_val, y_train, y_val = train_test_split(data[numeric], data[target].astype(int), test_size=0.25, random_state=9)

net = make_pipeline(SimpleImputer(), StandardScaler(), MLPClassifier((64, 32), early_stopping=True, max_iter=200, verbose=True))  #= model
net.fit(X_train, y_train)  #= trained, train-loss?
mlp = net[-1]
print("final training loss:", mlp.loss_)  #= train-loss
print("best validation accuracy:", mlp.best_validation_score_)  #= test-loss
print("hold-out auc:", roc_auc_score(y_val, net.predict_proba(X_val)[:, 1]))  #= test-loss

out = test[["request_id"]].assign(requester_received_pizza=net.predict_proba(test[numeric])[:, 1])  #= predicted
out.to_csv("submission.csv", index=False)
