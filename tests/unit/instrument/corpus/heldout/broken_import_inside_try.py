try:  #= packages
    import pandas as pd
    import lightgbm as lgb
    from sklearn.model_selection import train_test_split
    from sklearn.metrics import accuracy_score  #= packages
except ImportError:
    raise SystemExit('missing packages')

def main():
    try:
        train = pd.read_csv('/workdir/tabular-playground-series-dec-2021/prepared/public/train.csv')  #= data
    except FileNotFoundError:
        print('no data')
        return
    y = train['Cover_Type'] - 1
    X = train.drop(columns=['Cover_Type', 'Id'])
    X_tr, X_va, y_tr, y_va = train_test_split(X, y, test_size=0.2)
    clf = lgb.LGBMClassifier(objective='multiclass')  #= model
    clf.fit(X_tr, y_tr, eval_set=[(X_va, y_va)])  #= trained, test-loss?
    acc = accuracy_score(y_va, clf.predict(X_va))  #= test-loss
    print('accuracy', acc)
    # TODO predict test
