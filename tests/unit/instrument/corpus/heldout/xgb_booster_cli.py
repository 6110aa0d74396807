import argparse
import pandas as pd
import numpy as np
import xgboost as xgb
from sklearn.metrics import accuracy_score
from sklearn.model_selection import train_test_split  #= packages


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument('--train', default='train.csv')
    p.add_argument('--test', default='test.csv')
    p.add_argument('--rounds', type=int, default=300)
    return p.parse_args()


def load(path, target=None):
    df = pd.read_csv(path)  #= data
    ids = df.pop('Id')
    y = df.pop(target) - 1 if target else None
    return df, y, ids


def fit(dtr, dva, rounds):
    params = {'objective': 'multi:softmax', 'num_class': 7, 'max_depth': 10, 'eta': 0.1}
    history = {}
    bst = xgb.train(params, dtr, rounds, evals=[(dtr, 'train'), (dva, 'valid')], evals_result=history, verbose_eval=False)  #= model, trained, train-loss?, test-loss?
    print('mlogloss train/valid:', history['train']['mlogloss'][-1], history['valid']['mlogloss'][-1])  #= train-loss, test-loss
    return bst


def main():
    args = parse_args()
    X, y, _ = load(args.train, 'Cover_Type')  #= data
    X_test, _, ids = load(args.test)  #= data
    Xtr, Xva, ytr, yva = train_test_split(X, y, test_size=0.15, random_state=99)
    dtr, dva = xgb.DMatrix(Xtr, ytr), xgb.DMatrix(Xva, yva)
    bst = fit(dtr, dva, args.rounds)  #= model, trained, train-loss, test-loss
    acc = accuracy_score(yva, bst.predict(dva))  #= test-loss
    print(f'{acc=:.4f}')
    labels = bst.predict(xgb.DMatrix(X_test)).astype(int) + 1  #= predicted
    pd.DataFrame({'Id': ids, 'Cover_Type': labels}).to_csv('submission.csv', index=False)


if __name__ == '__main__':
    main()
