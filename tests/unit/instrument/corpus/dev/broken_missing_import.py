import pandas as pd
from sklearn.model_selection import train_test_split  #= packages

train = pd.read_csv('train.csv')  #= data
test = pd.read_csv('test.csv')  #= data
X = np.array(train[['len_a', 'len_b']])
X_train, X_val, y_train, y_val = train_test_split(X, train['label'])

model = LogisticRegression()  #= model
model.fit(X_train, y_train)  #= trained
print('val loss', log_loss(y_val, model.predict_proba(X_val)))  #= test-loss
p = model.predict_proba(test[['len_a', 'len_b']])  #= predicted
np.savetxt('submission.csv', p, delimiter=',')
