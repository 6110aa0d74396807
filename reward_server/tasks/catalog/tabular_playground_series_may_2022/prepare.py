"""Kaggle's control data, split as MLE-bench splits it, with ids counted anew from 0.

MLE-bench holds out 100,000 of Kaggle's 900,000 rows. A table with fewer rows, such as a small
twin, gives the same share of them: one in nine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sklearn.model_selection import train_test_split

from reward_server.tasks.sdk.raw import read_large_csv

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

ARCHIVE = "tabular-playground-series-may-2022.zip"
TEST_ROWS = 100_000
ROWS_PER_TEST_ROW = 9


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Split Kaggle's train.csv; the ids of the test follow those of the train."""
    labelled = read_large_csv(raw, "train.csv", [ARCHIVE], ["id", "target"])
    train, test = train_test_split(labelled, test_size=_test_rows(len(labelled)), random_state=0)
    del labelled
    train, test = _renumber(train, first=0), _renumber(test, first=len(train))
    train.to_csv(public / "train.csv", index=False)
    test.to_csv(private / "test.csv", index=False)
    test.drop(columns="target").to_csv(public / "test.csv", index=False)
    answers = test[["id", "target"]]
    answers.to_csv(private / "gold_submission.csv", index=False)
    answers.assign(target=0.5).to_csv(public / "sample_submission.csv", index=False)


def _test_rows(total: int) -> int:
    return min(TEST_ROWS, -(-total // ROWS_PER_TEST_ROW))


def _renumber(rows: pd.DataFrame, *, first: int) -> pd.DataFrame:
    return rows.assign(id=range(first, first + len(rows)))
