import pandas as pd
from scipy.sparse import hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

DATA = "/workdir/detecting-insults-in-social-commentary/prepared/public"

train_df = pd.read_csv(f"{DATA}/train.csv")
test_df = pd.read_csv(f"{DATA}/test.csv")


def clean(comments):
    text = comments.str.strip('"').str.lower()
    return text.str.replace(r"\\n|\\xa0|\\u[0-9a-f]{4}", " ", regex=True)


words = TfidfVectorizer(ngram_range=(1, 3), min_df=3, sublinear_tf=True)
chars = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), min_df=5, sublinear_tf=True)

texts = clean(train_df["Comment"])
X = hstack([words.fit_transform(texts), chars.fit_transform(texts)]).tocsr()
test_texts = clean(test_df["Comment"])
X_test = hstack([words.transform(test_texts), chars.transform(test_texts)]).tocsr()
y = train_df["Insult"].to_numpy()

X_train, X_valid, y_train, y_valid = train_test_split(
    X, y, test_size=0.15, random_state=0, stratify=y
)
model = LogisticRegression(C=4.0, max_iter=500, solver="liblinear")
model.fit(X_train, y_train)

train_pred = model.predict_proba(X_train)[:, 1]
print("Training loss:", log_loss(y_train, train_pred))

valid_pred = model.predict_proba(X_valid)[:, 1]
print("Validation loss:", log_loss(y_valid, valid_pred))
print("Validation AUC:", roc_auc_score(y_valid, valid_pred))

test_pred = model.predict_proba(X_test)[:, 1]
submission = pd.DataFrame(
    {"Insult": test_pred, "Date": test_df["Date"], "Comment": test_df["Comment"]}
)
submission.to_csv("submission.csv", index=False)
