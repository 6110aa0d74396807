import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold
from sklearn.naive_bayes import MultinomialNB  #> 1

train = pd.read_csv("/workdir/spooky-author-identification/prepared/public/train.csv")
test = pd.read_csv("/workdir/spooky-author-identification/prepared/public/test.csv")  #> 2
labels = ["EAP", "HPL", "MWS"]
y = train["author"].map({a: i for i, a in enumerate(labels)}).values

cv = CountVectorizer(analyzer="char_wb", ngram_range=(2, 4), max_features=3000)
X = cv.fit_transform(train["text"])
X_test = cv.transform(test["text"])

scores, fold_preds = [], []
for train_index, val_index in KFold(n_splits=4, shuffle=True, random_state=42).split(X):
    model = MultinomialNB(alpha=0.3)  #> 3
    model.fit(X[train_index], y[train_index])  #> 5
    print("train", log_loss(y[train_index], model.predict_proba(X[train_index])))  #> 4
    val_pred = model.predict_proba(X[val_index])
    scores.append(log_loss(y[val_index], val_pred))  #> 6
    fold_preds.append(model.predict_proba(X_test))  #> 7
print("CV log loss", np.mean(scores))

preds = np.mean(fold_preds, axis=0)
preds = preds / preds.sum(axis=1, keepdims=True)
submission = pd.DataFrame(preds, columns=labels)
submission.insert(0, "id", test["id"])
submission.to_csv("./submission.csv", index=False)
