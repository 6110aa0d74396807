"""Kaggle's pairs of phrases, split as MLE-bench splits them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sklearn.model_selection import train_test_split

from reward_server.tasks.sdk.raw import parse_raw_csv, read_raw

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = ("id", "anchor", "target", "context", "score")
ARCHIVE = "us-patent-phrase-to-phrase-matching.zip"


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Split Kaggle's train.csv; the answers keep the phrases."""
    pairs = parse_raw_csv(read_raw(raw, "train.csv", [ARCHIVE]), "train.csv", COLUMNS)
    train, test = train_test_split(pairs, test_size=0.1, random_state=0)
    train.to_csv(public / "train.csv", index=False)
    test.to_csv(private / "test.csv", index=False)
    test.drop(columns="score").to_csv(public / "test.csv", index=False)
    test[["id"]].assign(score=0).to_csv(public / "sample_submission.csv", index=False)
