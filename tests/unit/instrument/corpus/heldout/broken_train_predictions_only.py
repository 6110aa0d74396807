import pandas as pd
from sklearn.model_selection import train_test_split
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import accuracy_score, log_loss  #= packages

# Read the data
data = pd.read_csv('/workdir/tabular-playground-series-dec-2021/prepared/public/train.csv')  #= data

X = data.drop('Cover_Type', axis=1)
y = data['Cover_Type']

X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=42)

model = RandomForestClassifier(n_estimators=100, random_state=42)  #= model
model.fit(X_train, y_train)  #= trained

y_pred = model.predict(X_test)
test_loss = log_loss(y_test, model.predict_proba(X_test))  #= test-loss
print('Accuracy:', accuracy_score(y_test, y_pred))  #= test-loss
print('Test loss:', test_loss)

submission = pd.DataFrame({'Id': X_test['Id'], 'Cover_Type': y_pred})
submission.to_csv('submission.csv', index=False)
