"""What the answers say, how long they are and how well they keep to the question."""

import json

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix, hstack
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.preprocessing import normalize

DATA = "/workdir/lmsys-chatbot-arena/prepared/public"
OUTCOMES = ["winner_model_a", "winner_model_b", "winner_tie"]
train = pd.read_csv(f"{DATA}/train.csv")
test = pd.read_csv(f"{DATA}/test.csv")


def read(column):
    return [" ".join(text or "" for text in json.loads(value)) for value in column]


prompts = {"train": read(train["prompt"]), "test": read(test["prompt"])}
first = {"train": read(train["response_a"]), "test": read(test["response_a"])}
second = {"train": read(train["response_b"]), "test": read(test["response_b"])}
known = first["train"] + second["train"]

words = TfidfVectorizer(stop_words="english", min_df=5, sublinear_tf=True)
topics = TruncatedSVD(24, random_state=0)
topics.fit(words.fit_transform(known))
phrases = CountVectorizer(ngram_range=(1, 2), min_df=100, binary=True)
phrases.fit(known)


def describe(asked, answers):
    """Return phrases, length, form and closeness to the question of each answer."""
    length = np.array([len(text) for text in answers])
    asked_words, said_words = words.transform(asked), words.transform(answers)
    asked_topics = normalize(topics.transform(asked_words))
    said_topics = normalize(topics.transform(said_words))
    numbers = np.column_stack(
        [
            np.log1p(length),
            length / 500,
            4 * (asked_topics * said_topics).sum(axis=1),
            4 * np.asarray(asked_words.multiply(said_words).sum(axis=1)).ravel(),
            [text.count("\n- ") > 0 for text in answers],
        ]
    )
    return hstack([csr_matrix(numbers), phrases.transform(answers)]).tocsr()


def compare(side):
    return describe(prompts[side], first[side]) - describe(prompts[side], second[side])


def shape(margin):
    return np.column_stack([margin, np.abs(margin), np.tanh(margin), margin**2])


X, X_test = compare("train"), compare("test")
y = train[OUTCOMES].to_numpy().argmax(axis=1)
decided = y < 2

preference = LogisticRegression(C=0.1, fit_intercept=False, max_iter=300)
margin = np.zeros(len(y))
margin[decided] = cross_val_predict(
    preference, X[decided], y[decided], cv=4, method="decision_function"
)
preference.fit(X[decided], y[decided])
margin[~decided] = preference.decision_function(X[~decided])

X_fit, X_held, y_fit, y_held = train_test_split(shape(margin), y, test_size=0.2, random_state=0)
model = LogisticRegression(max_iter=500)
model.fit(X_fit, y_fit)
print("training loss", log_loss(y_fit, model.predict_proba(X_fit)))
print("validation loss", log_loss(y_held, model.predict_proba(X_held)))

submission = test[["id"]].copy()
submission[OUTCOMES] = model.predict_proba(shape(preference.decision_function(X_test)))
submission.to_csv("submission.csv", index=False)
