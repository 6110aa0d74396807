import pandas as pd
import lightgbm as lgb
from sklearn.preprocessing import LabelEncoder
from sklearn.model_selection import train_test_split
from sklearn.metrics import log_loss, accuracy_score  #= packages

# 1. Load the data
train_data = pd.read_csv('/workdir/leaf-classification/prepared/public/train.csv')  #= data
test_data = pd.read_csv('/workdir/leaf-classification/prepared/public/test.csv')  #= data

# 2. Encode labels
label_encoder = LabelEncoder()
train_data['species'] = label_encoder.fit_transform(train_data['species'])

# 3. Split
X = train_data.drop(columns=['id', 'species'])
y = train_data['species']
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=42)

# 4. Train
model = lgb.LGBMClassifier(objective='multiclass', num_class=99)  #= model
model.fit(X_train, y_train)  #= trained

# 5. Losses
y_train_pred = model.predict_proba(X_train)
y_test_pred = model.predict_proba(X_test)
print(f'Training loss: {log_loss(y_train, y_train_pred)}')  #= train-loss
print(f'Testing loss: {log_loss(y_test, y_test_pred)}')  #= test-loss

# 6. Predict and save
predictions = model.predict_proba(test_data.drop(columns=['id']))  #= predicted
submission = pd.DataFrame(predictions, columns=label_encoder.classes_)
submission.insert(0, 'id', test_data['id'])
submission.to_csv('./submission.csv', index=False)
