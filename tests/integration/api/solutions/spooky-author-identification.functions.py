from pathlib import Path
from typing import Tuple

import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline  #> 1

DATA_DIR = Path("/workdir/spooky-author-identification/prepared/public")


def load() -> Tuple[pd.DataFrame, pd.DataFrame]:
    return pd.read_csv(DATA_DIR / "train.csv"), pd.read_csv(DATA_DIR / "test.csv")


def build_pipeline() -> Pipeline:
    return Pipeline(
        [
            ("tfidf", TfidfVectorizer(min_df=2, sublinear_tf=True)),
            ("clf", LogisticRegression(C=2.0, max_iter=500)),
        ]
    )


def make_submission(model: Pipeline, test: pd.DataFrame) -> pd.DataFrame:
    probs = model.predict_proba(test["text"])  #> 7
    submission = pd.DataFrame(probs, columns=model.classes_)
    submission.insert(0, "id", test["id"].values)
    return submission


def main() -> None:
    train, test = load()  #> 2
    tr, va = train_test_split(train, test_size=0.2, random_state=1, stratify=train["author"])
    model = build_pipeline()  #> 3
    model.fit(tr["text"], tr["author"])  #> 5
    train_loss = log_loss(tr["author"], model.predict_proba(tr["text"]))  #> 4
    valid_loss = log_loss(va["author"], model.predict_proba(va["text"]))  #> 6
    print(f"train loss {train_loss:.4f} valid loss {valid_loss:.4f}")
    make_submission(model, test).to_csv("./submission.csv", index=False)


if __name__ == "__main__":
    main()
