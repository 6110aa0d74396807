import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

try:
    from catboost import CatBoostClassifier
    HAVE_CATBOOST = True
except ImportError:
    HAVE_CATBOOST = False
print("catboost:", HAVE_CATBOOST)  #> 1

try:
    train = pd.read_csv("../input/spooky-author-identification/train.csv")
    test = pd.read_csv("../input/spooky-author-identification/test.csv")
except FileNotFoundError:
    train = pd.read_csv("/workdir/spooky-author-identification/prepared/public/train.csv")
    test = pd.read_csv("/workdir/spooky-author-identification/prepared/public/test.csv")  #> 2

X_train, X_val, y_train, y_val = train_test_split(
    train.text, train.author, test_size=0.2, random_state=0
)
tfidf = TfidfVectorizer(min_df=3)
X_train = tfidf.fit_transform(X_train)
X_val = tfidf.transform(X_val)

if HAVE_CATBOOST:
    model = CatBoostClassifier(iterations=100, verbose=0)
else:
    model = LogisticRegression(max_iter=500)  #> 3

try:
    model.fit(X_train, y_train)  #> 5
except ValueError as e:
    print(f"Error during training: {e}")
    raise

try:
    print("training loss", log_loss(y_train, model.predict_proba(X_train)))  #> 4
    print("validation loss", log_loss(y_val, model.predict_proba(X_val)))  #> 6
except ValueError:
    print("could not evaluate")

try:
    probs = model.predict_proba(tfidf.transform(test.text))  #> 7
    sub = pd.DataFrame(probs, columns=model.classes_)
    sub.insert(0, "id", test.id)
    sub.to_csv("submission.csv", index=False)
finally:
    print("done")
