"""Kaggle's labelled leaves, split as MLE-bench splits them, with ids counted anew from 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sklearn.model_selection import train_test_split

from reward_server.tasks.sdk.raw import copy_pictures, parse_raw_csv, read_raw

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

STATES = ["healthy", "multiple_diseases", "rust", "scab"]


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Split Kaggle's train.csv and bring each leaf's picture along under its new id."""
    leaves = parse_raw_csv(read_raw(raw, "train.csv"), "train.csv", ["image_id", *STATES])
    train, test = split(leaves)
    new_ids = _count("Train", train) | _count("Test", test)
    train, test = (part.assign(image_id=part["image_id"].map(new_ids)) for part in (train, test))
    train.to_csv(public / "train.csv", index=False)
    test.to_csv(private / "test.csv", index=False)
    test[["image_id"]].to_csv(public / "test.csv", index=False)
    sample = test[["image_id"]].assign(**dict.fromkeys(STATES, 0.25))
    sample.to_csv(public / "sample_submission.csv", index=False)
    pictures = public / "images"
    pictures.mkdir()
    places = {f"{old}.jpg": pictures / f"{new}.jpg" for old, new in new_ids.items()}
    copy_pictures(raw, "images", places)


def split(leaves: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the leaves of the train and of the test side."""
    train, test = train_test_split(leaves, test_size=0.1, random_state=0)
    return train, test


def _count(side: str, leaves: pd.DataFrame) -> dict[str, str]:
    return {old: f"{side}_{new}" for new, old in enumerate(leaves["image_id"].unique())}
