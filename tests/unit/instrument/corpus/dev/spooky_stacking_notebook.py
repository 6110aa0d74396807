# %% [markdown]
# # Spooky authors

# %%
import pandas as pd
import numpy as np
import matplotlib.pyplot as plt
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.linear_model import LogisticRegression
from sklearn.ensemble import StackingClassifier, VotingClassifier  #= packages

# %%
train = pd.read_csv("train.csv")  #= data
test = pd.read_csv("test.csv")  #= data
train.head()

# %%
train.author.value_counts().plot(kind='bar')
plt.show()

# %%
y = train.author.map({'EAP': 0, 'HPL': 1, 'MWS': 2})
ctv = CountVectorizer(ngram_range=(1, 3), token_pattern=r'\w{1,}')
ctv.fit(list(train.text) + list(test.text))
xtrain_ctv = ctv.transform(train.text)
xtest_ctv = ctv.transform(test.text)

# %%
from sklearn.model_selection import train_test_split, cross_val_score
from sklearn.metrics import log_loss
xtr, xva, ytr, yva = train_test_split(xtrain_ctv, y, random_state=42, test_size=0.1, stratify=y)

# %%
stack = StackingClassifier(
    estimators=[('nb', MultinomialNB()), ('lr', LogisticRegression(max_iter=300))],
    final_estimator=LogisticRegression(),
)  #= model
stack.fit(xtr, ytr)  #= trained

# %%
"logloss: %0.3f" % log_loss(yva, stack.predict_proba(xva))  #= test-loss

# %%
stack.score(xtr, ytr)  #= train-loss

# %%
p = stack.predict_proba(xtest_ctv)  #= predicted
sub = pd.DataFrame({'id': test['id'], 'EAP': p[:, 0], 'HPL': p[:, 1], 'MWS': p[:, 2]})
sub.to_csv("submission.csv", index=False)
sub.head()
