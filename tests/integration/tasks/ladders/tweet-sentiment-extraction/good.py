import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

DATA = "/workdir/tweet-sentiment-extraction/prepared/public"

train_df = pd.read_csv(f"{DATA}/train.csv").dropna()
test_df = pd.read_csv(f"{DATA}/test.csv")
test_df["text"] = test_df["text"].fillna("")


def plain(word):
    return word.lower().strip(".,!;-")


def token_features(words, sentiment):
    padded = ["<s>", "<s>"] + [plain(w) for w in words] + ["</s>", "</s>"]
    rows = []
    for i in range(len(words)):
        before2, before, word, after, after2 = padded[i : i + 5]
        rows.append(
            [
                f"w={word}",
                f"w={word}|{sentiment}",
                f"b={before}|{sentiment}",
                f"a={after}|{sentiment}",
                f"b2={before2}|{sentiment}",
                f"a2={after2}|{sentiment}",
                f"bw={before} {word}",
                f"wa={word} {after}",
            ]
        )
    return rows


def token_labels(words, selected):
    chosen = [plain(w) for w in selected.split()]
    whole = [plain(w) for w in words]
    best, start = -1, 0
    for i in range(len(words) - len(chosen) + 1):
        hits = sum(a == b for a, b in zip(whole[i:], chosen))
        if hits > best:
            best, start = hits, i
    return [int(start <= i < start + len(chosen)) for i in range(len(words))]


def build(rows):
    features, labels, groups = [], [], []
    for number, row in enumerate(rows.itertuples()):
        words = row.text.split()
        features += token_features(words, row.sentiment)
        groups += [number] * len(words)
        if hasattr(row, "selected_text"):
            labels += token_labels(words, row.selected_text)
    return features, np.array(labels), np.array(groups)


def best_span(words, chances):
    gains = np.log(chances + 1e-6) - np.log(1 - chances + 1e-6)
    best, span = -np.inf, (0, 1)
    for i in range(len(words)):
        total = 0.0
        for j in range(i, len(words)):
            total += gains[j]
            if total > best:
                best, span = total, (i, j + 1)
    return " ".join(words[span[0] : span[1]])


def jaccard(a, b):
    a, b = set(a.lower().split()), set(b.lower().split())
    return len(a & b) / len(a | b)


charged = train_df[train_df["sentiment"] != "neutral"]
fit_df, valid_df = train_test_split(charged, test_size=0.15, random_state=0)

X_fit, y_fit, _ = build(fit_df)
X_valid, y_valid, valid_groups = build(valid_df)
vectorizer = CountVectorizer(analyzer=lambda names: names, min_df=2)
X_fit = vectorizer.fit_transform(X_fit)
X_valid = vectorizer.transform(X_valid)

model = LogisticRegression(C=2.0, solver="liblinear", max_iter=200)
model.fit(X_fit, y_fit)

fit_pred = model.predict_proba(X_fit)[:, 1]
print("Training loss:", log_loss(y_fit, fit_pred))

valid_pred = model.predict_proba(X_valid)[:, 1]
print("Validation loss:", log_loss(y_valid, valid_pred))
found = [
    best_span(text.split(), valid_pred[valid_groups == n])
    for n, text in enumerate(valid_df["text"])
]
print("Validation Jaccard:", np.mean(list(map(jaccard, found, valid_df["selected_text"]))))

X_test, _, test_groups = build(test_df)
test_pred = model.predict_proba(vectorizer.transform(X_test))[:, 1]
selected = []
for n, row in enumerate(test_df.itertuples()):
    words = row.text.split()
    if row.sentiment == "neutral" or len(words) < 2:
        selected.append(row.text)
    else:
        selected.append(best_span(words, test_pred[test_groups == n]))

pd.DataFrame({"textID": test_df["textID"], "selected_text": selected}).to_csv(
    "submission.csv", index=False
)
