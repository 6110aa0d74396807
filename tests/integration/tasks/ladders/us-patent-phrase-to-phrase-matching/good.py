"""Which words mean the same is learned from pairs of words, then corrected by boosted trees."""

import lightgbm as lgb
import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import KFold, cross_val_predict

DATA = "/workdir/us-patent-phrase-to-phrase-matching/prepared/public"
train = pd.read_csv(f"{DATA}/train.csv")
test = pd.read_csv(f"{DATA}/test.csv")
y = train["score"].to_numpy()


def pair_words(pairs):
    """Return one made-up word for every word of an anchor beside every word of its target."""
    lines = []
    for anchor, target in zip(pairs["anchor"], pairs["target"]):
        befores, afters = anchor.split(), target.split()
        lines.append(
            [f"{min(a, b)}|{max(a, b)}" for a in befores for b in afters if a != b]
            + [f"same {a}" for a in befores if a in afters]
            + [f"last {a == b}" for a, b in [(befores[-1], afters[-1])]]
        )
    return lines


characters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 3))
characters.fit(pd.concat([train["anchor"], train["target"]]))
counter = CountVectorizer(analyzer=lambda words: words, min_df=2)
X_words = counter.fit_transform(pair_words(train))
X_test_words = counter.transform(pair_words(test))

ridge = Ridge(alpha=0.7, solver="lsqr")
folds = KFold(5, shuffle=True, random_state=0)
learned = cross_val_predict(ridge, X_words, y, cv=folds)
ridge.fit(X_words, y)
test_learned = ridge.predict(X_test_words)
print("correlation of the pairs of words", np.corrcoef(y, learned)[0, 1])


def describe(pairs, learned):
    """Return numbers for the spelling, the context and what is learned of the words."""
    anchors, targets = characters.transform(pairs["anchor"]), characters.transform(pairs["target"])
    words = list(zip(pairs["anchor"].str.split(), pairs["target"].str.split()))
    return pd.DataFrame(
        {
            "learned": learned,
            "cosine": np.asarray(anchors.multiply(targets).sum(axis=1)).ravel(),
            "section": pairs["context"].str[0].map(ord).to_numpy(),
            "shared": [len(set(a) & set(b)) for a, b in words],
            "same_last": [int(a[-1] == b[-1]) for a, b in words],
            "same_first": [int(a[0] == b[0]) for a, b in words],
            "last_within": [int(a[-1] in b[-1]) for a, b in words],
            "words_before": [len(a) for a, b in words],
            "words_after": [len(b) for a, b in words],
        }
    )


X, X_test = describe(train, learned), describe(test, test_learned)
held, prediction = np.zeros(len(X)), np.zeros(len(X_test))
for inner, outer in folds.split(X):
    model = lgb.LGBMRegressor(
        n_estimators=150, learning_rate=0.06, num_leaves=15, min_child_samples=15, n_jobs=1,
        verbose=-1,
    )
    model.fit(X.iloc[inner], y[inner])
    print("training loss", mean_squared_error(y[inner], model.predict(X.iloc[inner])))
    held[outer] = model.predict(X.iloc[outer])
    prediction += model.predict(X_test) / folds.n_splits
print("validation loss", mean_squared_error(y, held))
print("validation correlation", np.corrcoef(y, held)[0, 1])

submission = test[["id"]].copy()
submission["score"] = prediction
submission.to_csv("submission.csv", index=False)
