"""Kaggle's conversations, split as MLE-bench splits them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sklearn.model_selection import train_test_split

from reward_server.tasks.sdk.raw import parse_raw_csv, read_raw

if TYPE_CHECKING:
    from pathlib import Path

TEST_COLUMNS = ["id", "prompt", "response_a", "response_b"]
OUTCOMES = ["winner_model_a", "winner_model_b", "winner_tie"]
COLUMNS = (*TEST_COLUMNS, "model_a", "model_b", *OUTCOMES)
ARCHIVE = "lmsys-chatbot-arena.zip"


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Split Kaggle's train.csv; the new test names no model."""
    conversations = parse_raw_csv(read_raw(raw, "train.csv", [ARCHIVE]), "train.csv", COLUMNS)
    train, test = train_test_split(conversations, test_size=0.1, random_state=0)
    train.to_csv(public / "train.csv", index=False)
    test.to_csv(private / "answers.csv", index=False)
    test[TEST_COLUMNS].to_csv(public / "test.csv", index=False)
    thirds = dict.fromkeys(OUTCOMES, 1 / 3)
    test[["id"]].assign(**thirds).to_csv(public / "sample_submission.csv", index=False)
