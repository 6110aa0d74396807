import optuna
import pandas as pd
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from xgboost import XGBClassifier  #= packages

SEED = 0


def get_data():
    train = pd.read_csv("train.csv")  #= data
    test = pd.read_csv("test.csv")  #= data
    feats = [c for c in test.columns if c.startswith("f_") and c != "f_27"]
    return train[feats], train["target"], test[feats], test["id"]


class Objective:
    def __init__(self, X, y):
        self.X_tr, self.X_va, self.y_tr, self.y_va = train_test_split(X, y, test_size=0.2, random_state=SEED)

    def __call__(self, trial):
        params = {
            "max_depth": trial.suggest_int("max_depth", 3, 10),
            "learning_rate": trial.suggest_float("learning_rate", 1e-3, 0.3, log=True),
        }
        clf = XGBClassifier(n_estimators=300, **params)  #= model
        clf.fit(self.X_tr, self.y_tr)  #= trained
        return roc_auc_score(self.y_va, clf.predict_proba(self.X_va)[:, 1])


def main():
    X, y, X_test, ids = get_data()  #= data
    study = optuna.create_study(direction="maximize")
    study.optimize(Objective(X, y), n_trials=10)  #= model, trained, test-loss
    print(study.best_params, study.best_value)  #= test-loss
    final = XGBClassifier(n_estimators=300, **study.best_params)  #= model
    final.fit(X, y)  #= trained
    print("train auc", roc_auc_score(y, final.predict_proba(X)[:, 1]))  #= train-loss
    out = pd.DataFrame({"id": ids, "target": final.predict_proba(X_test)[:, 1]})  #= predicted
    out.to_csv("submission.csv", index=False)


if __name__ == "__main__":
    main()
