"""Kaggle's sentences, split as MLE-bench splits them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
from sklearn.model_selection import train_test_split

from reward_server.tasks.sdk.raw import read_raw_csv

if TYPE_CHECKING:
    from pathlib import Path

SAMPLE = {"EAP": 0.403493538995863, "HPL": 0.287808366106543, "MWS": 0.308698094897594}


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Split Kaggle's train.csv; the answers are one-hot."""
    train, test = train_test_split(
        read_raw_csv(raw, "train.csv", ["train.zip"]), test_size=0.1, random_state=0
    )
    answers = pd.DataFrame(
        {"id": test["id"]} | {author: (test["author"] == author).astype(int) for author in SAMPLE}
    )
    train.to_csv(public / "train.csv", index=False)
    test.drop(columns="author").to_csv(public / "test.csv", index=False)
    answers.assign(**SAMPLE).to_csv(public / "sample_submission.csv", index=False)
    answers.to_csv(private / "test.csv", index=False)
