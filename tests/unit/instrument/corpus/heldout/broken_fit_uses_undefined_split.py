import pandas as pd
from sklearn.linear_model import Ridge
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import mean_absolute_error, cohen_kappa_score  #= packages

df = pd.read_csv('train.csv')  #= data
df_test = pd.read_csv('test.csv')  #= data
cv = CountVectorizer(max_features=2000)
features = cv.fit_transform(df['essay'])

ridge = Ridge(alpha=10)  #= model
ridge.fit(X_train, y_train)  #= trained
train_mae = mean_absolute_error(y_train, ridge.predict(X_train))  #= train-loss
val_mae = mean_absolute_error(y_val, ridge.predict(X_val))  #= test-loss
print('MAE train/val:', train_mae, val_mae)

df_test['score'] = ridge.predict(cv.transform(df_test['essay'])).round().astype(int)  #= predicted
df_test[['essay_id', 'score']].to_csv('submission.csv', index=False)
