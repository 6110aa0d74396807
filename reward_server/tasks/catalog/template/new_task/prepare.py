"""The measurements of machines, split at random; labels of the test part stay private."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sklearn.model_selection import train_test_split

from reward_server.tasks.sdk.raw import parse_raw_csv, read_raw

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = ["machine_id", "age_years", "temperature", "vibration", "maker", "failed"]


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Split machines.csv, which may also lie in machines.csv.zip."""
    machines = parse_raw_csv(read_raw(raw, "machines.csv"), "machines.csv", COLUMNS)[COLUMNS]
    train, test = train_test_split(machines, test_size=0.2, random_state=0)
    answers = test[["machine_id", "failed"]]
    train.to_csv(public / "train.csv", index=False)
    test.drop(columns="failed").to_csv(public / "test.csv", index=False)
    answers.assign(failed=0.5).to_csv(public / "sample_submission.csv", index=False)
    answers.to_csv(private / "test.csv", index=False)
