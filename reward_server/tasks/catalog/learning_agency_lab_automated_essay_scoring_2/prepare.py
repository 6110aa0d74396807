"""Kaggle's essays, split as MLE-bench splits them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.model_selection import train_test_split

from reward_server.tasks.sdk.raw import parse_raw_csv, read_raw

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = ["essay_id", "full_text", "score"]


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Split Kaggle's train.csv; the sample submission has scores drawn at random."""
    essays = parse_raw_csv(read_raw(raw, "train.csv"), "train.csv", COLUMNS)[COLUMNS]
    train, test = train_test_split(essays, test_size=0.1, random_state=0)
    drawn = np.random.RandomState(42).randint(1, 7, size=len(test))
    train.to_csv(public / "train.csv", index=False)
    test.to_csv(private / "answers.csv", index=False)
    test.drop(columns="score").to_csv(public / "test.csv", index=False)
    test[["essay_id"]].assign(score=drawn).to_csv(public / "sample_submission.csv", index=False)
