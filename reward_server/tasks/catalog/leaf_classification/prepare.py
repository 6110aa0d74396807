"""Kaggle's labelled leaves, split as MLE-bench splits them; the answers are one-hot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
from sklearn.model_selection import train_test_split

from reward_server.errors import SetupError
from reward_server.tasks.catalog.leaf_classification.species import SPECIES
from reward_server.tasks.sdk.raw import copy_pictures, parse_raw_csv, read_raw

if TYPE_CHECKING:
    from pathlib import Path

FEATURES = [f"{family}{n}" for family in ("margin", "shape", "texture") for n in range(1, 65)]


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Split Kaggle's train.csv and bring every picture along under its own id."""
    leaves = _read_leaves(raw)
    train, test = train_test_split(leaves, test_size=0.1, random_state=0)
    answers = pd.DataFrame(
        {"id": test["id"]} | {name: (test["species"] == name).astype(int) for name in SPECIES}
    )
    train.to_csv(public / "train.csv", index=False)
    test.drop(columns="species").to_csv(public / "test.csv", index=False)
    answers.to_csv(private / "test.csv", index=False)
    guess = dict.fromkeys(SPECIES, 1 / len(SPECIES))
    answers.assign(**guess).to_csv(public / "sample_submission.csv", index=False)
    pictures = public / "images"
    pictures.mkdir()
    names = [f"{number}.jpg" for number in leaves["id"]]
    copy_pictures(raw, "images", {name: pictures / name for name in names})


def _read_leaves(raw: Path) -> pd.DataFrame:
    columns = ["id", "species", *FEATURES]
    leaves = parse_raw_csv(read_raw(raw, "train.csv"), "train.csv", columns)
    unknown = leaves.loc[~leaves["species"].isin(SPECIES), "species"]
    if len(unknown):
        message = f"the raw file train.csv has an unknown species: {unknown.iloc[0]}"
        raise SetupError(message)
    return leaves
