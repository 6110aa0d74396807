"""Kaggle's tweets, split as MLE-bench splits them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sklearn.model_selection import train_test_split

from reward_server.tasks.sdk.raw import parse_raw_csv, read_raw

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = ["textID", "text", "selected_text", "sentiment"]


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Split Kaggle's train.csv; its one row without a text goes to the new training set."""
    tweets = parse_raw_csv(read_raw(raw, "train.csv"), "train.csv", COLUMNS)[COLUMNS]
    train, test = train_test_split(tweets, test_size=0.1, random_state=0)
    train.to_csv(public / "train.csv", index=False)
    test.to_csv(private / "test.csv", index=False)
    test.drop(columns="selected_text").to_csv(public / "test.csv", index=False)
    sample = test[["textID"]].assign(selected_text="")
    sample.to_csv(public / "sample_submission.csv", index=False)
