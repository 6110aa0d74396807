import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix, hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge
from sklearn.metrics import cohen_kappa_score, mean_squared_error
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

DATA = "/workdir/learning-agency-lab-automated-essay-scoring-2/prepared/public"

train_df = pd.read_csv(f"{DATA}/train.csv")
test_df = pd.read_csv(f"{DATA}/test.csv")

vectorizer = TfidfVectorizer(ngram_range=(1, 1), min_df=10, sublinear_tf=True)
tfidf = vectorizer.fit_transform(train_df["full_text"])
test_tfidf = vectorizer.transform(test_df["full_text"])
vocabulary = set(vectorizer.vocabulary_)


def describe(texts):
    rows = []
    for text in texts:
        words = text.lower().replace(".", " ").replace(",", " ").split()
        unknown = sum(word not in vocabulary for word in words if len(word) > 1)
        rows.append(
            (
                np.log(len(text)),
                np.log(len(words)),
                np.log1p(unknown) - np.log(len(words)),
                len(set(words)) / len(words),
                text.count("\n\n"),
            )
        )
    return np.array(rows)


scaler = StandardScaler()
numbers = scaler.fit_transform(describe(train_df["full_text"]))
test_numbers = scaler.transform(describe(test_df["full_text"]))

X = hstack([tfidf * 4, csr_matrix(numbers)]).tocsr()
X_test = hstack([test_tfidf * 4, csr_matrix(test_numbers)]).tocsr()
y = train_df["score"].to_numpy()

X_train, X_valid, y_train, y_valid = train_test_split(X, y, test_size=0.1, random_state=0)
model = Ridge(alpha=5.0)
model.fit(X_train, y_train)

train_pred = model.predict(X_train)
print("Training loss:", mean_squared_error(y_train, train_pred))

valid_pred = model.predict(X_valid)
print("Validation loss:", mean_squared_error(y_valid, valid_pred))
valid_score = valid_pred.round().clip(1, 6).astype(int)
print("Validation QWK:", cohen_kappa_score(y_valid, valid_score, weights="quadratic"))

test_pred = model.predict(X_test)
submission = pd.DataFrame(
    {"essay_id": test_df["essay_id"], "score": test_pred.round().clip(1, 6).astype(int)}
)
submission.to_csv("submission.csv", index=False)
