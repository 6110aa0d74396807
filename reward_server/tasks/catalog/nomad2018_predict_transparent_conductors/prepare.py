"""Kaggle's materials, split as MLE-bench splits them, with ids counted anew from 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sklearn.model_selection import train_test_split

from reward_server.errors import SetupError
from reward_server.tasks.sdk.raw import read_raw_csv, read_raw_tree

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

SAMPLE = {"formation_energy_ev_natom": 0.1779, "bandgap_energy_ev": 1.8892}


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Split Kaggle's train.csv and bring each material's geometry along."""
    materials = read_raw_csv(raw, "train.csv")
    train, test = train_test_split(materials, test_size=0.1, random_state=0)
    places = _places(train, "train") | _places(test, "test")
    train, test = _renumber(train), _renumber(test)
    train.to_csv(public / "train.csv", index=False)
    test.to_csv(private / "test.csv", index=False)
    test.drop(columns=list(SAMPLE)).to_csv(public / "test.csv", index=False)
    test[["id"]].assign(**SAMPLE).to_csv(public / "sample_submission.csv", index=False)
    _copy_geometries(raw, public, places)


def _places(materials: pd.DataFrame, side: str) -> dict[int, str]:
    return {int(old): f"{side}/{new}" for new, old in enumerate(materials["id"], start=1)}


def _renumber(materials: pd.DataFrame) -> pd.DataFrame:
    return materials.assign(id=range(1, len(materials) + 1))


def _copy_geometries(raw: Path, public: Path, places: dict[int, str]) -> None:
    missing = dict(places)
    for path, data in read_raw_tree(raw, "train", ".xyz"):
        place = missing.pop(int(path.parts[-2]), None)
        if place is not None:
            (public / place).mkdir(parents=True)
            (public / place / "geometry.xyz").write_bytes(data)
    if missing:
        message = f"the raw file train/{min(missing)}/geometry.xyz is missing"
        raise SetupError(message)
