import joblib
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.metrics import roc_auc_score, log_loss
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler  #= packages

DATA = '/workdir/tabular-playground-series-may-2022/prepared/public'


def expand(df):
    letters = pd.DataFrame({f'c{i}': df['f_27'].str[i] for i in range(10)}, index=df.index)
    return pd.concat([df.drop(columns=['f_27', 'id']), letters], axis=1)


if __name__ == '__main__':
    train, test = [pd.read_csv(f'{DATA}/{part}.csv') for part in ('train', 'test')]  #= data
    y = train.pop('target')
    X, X_test = expand(train), expand(test)
    letters = [f'c{i}' for i in range(10)]
    numbers = [c for c in X.columns if c not in letters]
    prep = ColumnTransformer([
        ('num', StandardScaler(), numbers),
        ('cat', OrdinalEncoder(handle_unknown='use_encoded_value', unknown_value=-1), letters),
    ])
    stack = StackingClassifier(  #= model
        [('hgb', HistGradientBoostingClassifier(max_iter=300)), ('lr', LogisticRegression(max_iter=200))],
        final_estimator=LogisticRegression(),
    )
    model = Pipeline([('prep', prep), ('stack', stack)])  #= model
    X_fit, X_check, y_fit, y_check = train_test_split(X, y, test_size=0.1, random_state=7)
    model.fit(X_fit, y_fit)  #= trained
    joblib.dump(model, 'model.joblib')
    fitted = joblib.load('model.joblib')
    for name, data, truth in [('fit', X_fit, y_fit), ('check', X_check, y_check)]:  #= train-loss, test-loss
        p = fitted.predict_proba(data)[:, 1]
        print(name, 'auc', round(roc_auc_score(truth, p), 5), 'logloss', round(log_loss(truth, p), 5))  #= train-loss
    submission = pd.DataFrame({'id': test['id'], 'target': fitted.predict_proba(X_test)[:, 1]})  #= predicted
    submission.to_csv('submission.csv', index=False)
