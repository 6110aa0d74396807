"""Kaggle's patches of forest, split as MLE-bench splits them: ids and rare classes are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sklearn.model_selection import train_test_split

from reward_server.tasks.sdk.raw import read_large_csv

if TYPE_CHECKING:
    from pathlib import Path

ARCHIVE = "tabular-playground-series-dec-2021.zip"
SAMPLE_CLASS = 2


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Split Kaggle's train.csv; the only patch of class 5 goes where chance puts it."""
    labelled = read_large_csv(raw, "train.csv", [ARCHIVE], ["Id", "Cover_Type"])
    train, test = train_test_split(labelled, test_size=0.1, random_state=0)
    del labelled
    train.to_csv(public / "train.csv", index=False)
    test.to_csv(private / "test.csv", index=False)
    test.drop(columns="Cover_Type").to_csv(public / "test.csv", index=False)
    sample = test[["Id"]].assign(Cover_Type=SAMPLE_CLASS)
    sample.to_csv(public / "sample_submission.csv", index=False)
