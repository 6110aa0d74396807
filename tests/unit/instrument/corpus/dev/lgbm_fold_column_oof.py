import pandas as pd, numpy as np, lightgbm as lgb, gc
from sklearn import model_selection, metrics, preprocessing  #= packages

def create_folds(df, n=5):
    df["kfold"] = -1
    df = df.sample(frac=1, random_state=0).reset_index(drop=True)
    kf = model_selection.StratifiedKFold(n_splits=n)
    for f, (t_, v_) in enumerate(kf.split(X=df, y=df.score.values)):
        df.loc[v_, "kfold"] = f
    return df

def features(df):
    df["al"] = df.anchor.str.len()
    df["tl"] = df.target.str.len()
    df["same"] = (df.anchor == df.target).astype(int)
    df["ctx"] = preprocessing.LabelEncoder().fit_transform(df.context)
    return df

def run(fold, df, df_test, cols):
    df_train = df[df.kfold != fold].reset_index(drop=True)
    df_valid = df[df.kfold == fold].reset_index(drop=True)
    reg = lgb.LGBMRegressor(n_estimators=400, learning_rate=0.05)  #= model
    reg.fit(df_train[cols], df_train.score.values, eval_set=[(df_valid[cols], df_valid.score.values)])  #= trained, test-loss?
    valid_preds = reg.predict(df_valid[cols])
    corr = np.corrcoef(df_valid.score.values, valid_preds)[0, 1]  #= test-loss
    print(f"Fold={fold}, pearson={corr}")
    return reg.predict(df_test[cols])

if __name__ == "__main__":
    train = features(create_folds(pd.read_csv("../input/train.csv")))  #= data
    test = features(pd.read_csv("../input/test.csv"))  #= data
    cols = ["al", "tl", "same", "ctx"]
    all_preds = []
    for fold_ in range(5):
        all_preds.append(run(fold_, train, test, cols))  #= model, trained, test-loss, predicted
    sample = pd.read_csv("../input/sample_submission.csv")
    sample.score = np.mean(np.column_stack(all_preds), axis=1)  #= predicted
    sample.to_csv("submission.csv", index=False)
