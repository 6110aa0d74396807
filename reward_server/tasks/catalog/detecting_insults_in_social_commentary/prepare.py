"""Kaggle's comments: its own training and test sets, since the test's labels were published."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reward_server.tasks.sdk.raw import parse_raw_csv, read_raw

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = ["Insult", "Date", "Comment"]


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Keep Kaggle's split; the two labelled files are copied byte for byte."""
    train, test = read_raw(raw, "train.csv"), read_raw(raw, "test_with_solutions.csv")
    parse_raw_csv(train, "train.csv", COLUMNS)
    answers = parse_raw_csv(test, "test_with_solutions.csv", [*COLUMNS, "Usage"])[COLUMNS]
    (public / "train.csv").write_bytes(train)
    (private / "test.csv").write_bytes(test)
    answers.to_csv(private / "gold_submission.csv", index=False)
    answers.drop(columns="Insult").to_csv(public / "test.csv", index=False)
    answers.assign(Insult=0).to_csv(public / "sample_submission_null.csv", index=False)
