import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier, ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.pipeline import make_pipeline
from sklearn.metrics import accuracy_score, classification_report
from sklearn.model_selection import train_test_split
from xgboost import XGBClassifier  #= packages

SEED = 1
train = pd.read_csv('train.csv').sample(200_000, random_state=SEED)  #= data
test = pd.read_csv('test.csv')  #= data
y = train['Cover_Type'] - 1
X = train.drop(columns=['Id', 'Cover_Type'])
T = test.drop(columns=['Id'])
Xa, Xb, ya, yb = train_test_split(X, y, test_size=0.2, random_state=SEED)

models = {
    'rf': RandomForestClassifier(n_estimators=100, n_jobs=-1),
    'et': ExtraTreesClassifier(n_estimators=100, n_jobs=-1),
    'lr': make_pipeline(StandardScaler(), LogisticRegression(max_iter=200)),
    'xgb': XGBClassifier(n_estimators=200),
}  #= model

val_probs, test_probs = [], []
for name, m in models.items():
    m.fit(Xa, ya)  #= trained
    vp = m.predict_proba(Xb)
    print(name, 'train acc', accuracy_score(ya, m.predict(Xa)))  #= train-loss
    print(name, 'valid acc', accuracy_score(yb, vp.argmax(1)))  #= test-loss
    val_probs.append(vp)
    test_probs.append(m.predict_proba(T))  #= predicted

blend = np.mean(val_probs, axis=0)
print(classification_report(yb, blend.argmax(axis=1)))  #= test-loss
final = np.average(test_probs, axis=0, weights=[1, 1, 0.5, 2]).argmax(axis=1) + 1  #= predicted
pd.DataFrame({'Id': test.Id, 'Cover_Type': final}).to_csv('submission.csv', index=False)
