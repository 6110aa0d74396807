import pandas as pd
import numpy as np
from sklearn.linear_model import LinearRegression  #= packages

df = pd.read_csv('train.csv')  #= data
lr = LinearRegression()  #= model
lr.fit(X_train, y_train)  #= trained
mse = np.mean((lr.predict(X_train) - y_train) ** 2)  #= train-loss
print('Training MSE', mse)
preds = lr.predict(X_test)  #= predicted?
pd.DataFrame({'id': test_df['id'], 'score': preds}).to_csv('submission.csv')
