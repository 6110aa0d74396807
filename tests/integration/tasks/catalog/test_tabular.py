"""The two tabular playground tasks: MLE-bench's split, large tables, and twins that teach."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reward_server.errors import SetupError
from reward_server.tasks.folders import find_folders, read_card
from reward_server.tasks.sdk import raw as raw_files
from reward_server.tasks.sdk.modules import load_module
from tests.support.public_tables import read_table

if TYPE_CHECKING:
    from pathlib import Path

    from sklearn.base import BaseEstimator

FOLDERS = find_folders()
MAY, DEC = "tabular-playground-series-may-2022", "tabular-playground-series-dec-2021"
BOTH = pytest.mark.parametrize("task_id", [MAY, DEC])


def make_raw(task_id: str, root: Path, *, rows: int, seed: int = 5) -> Path:
    raw = root / "raw"
    raw.mkdir()
    load_module(FOLDERS[task_id] / "twin.py").generate(raw, seed=seed, rows=rows)
    return raw


def prepare(task_id: str, raw: Path, root: Path) -> tuple[Path, Path]:
    public, private = root / "public", root / "private"
    for directory in (public, private):
        directory.mkdir(parents=True)
    load_module(FOLDERS[task_id] / "prepare.py").prepare(raw, public, private)
    return public, private


def columns_but(table: pd.DataFrame, *names: str) -> list[str]:
    return [str(name) for name in table.columns if name not in names]


def test_may_holds_out_one_row_in_nine_and_renumbers_the_ids(tmp_path: Path) -> None:
    raw = make_raw(MAY, tmp_path, rows=95)
    public, private = prepare(MAY, raw, tmp_path)
    labelled = read_table(raw / "train.csv")
    train, test = train_test_split(labelled, test_size=11, random_state=0)
    train, test = train.assign(id=range(84)), test.assign(id=range(84, 95))
    expected = {
        public / "train.csv": train,
        public / "test.csv": test.drop(columns="target"),
        public / "sample_submission.csv": test[["id"]].assign(target=0.5),
        private / "test.csv": test,
        private / "gold_submission.csv": test[["id", "target"]],
    }
    assert sorted(expected) == sorted([*public.iterdir(), *private.iterdir()])
    for path, table in expected.items():
        assert path.read_text() == table.to_csv(index=False)


@pytest.mark.parametrize(
    ("total", "held_out"),
    [(900_000, 100_000), (900_001, 100_000), (2_000_000, 100_000), (9000, 1000), (10, 2), (2, 1)],
)
def test_may_holds_out_as_many_rows_as_mle_bench(total: int, held_out: int) -> None:
    assert load_module(FOLDERS[MAY] / "prepare.py")._test_rows(total) == held_out


def test_dec_holds_out_a_tenth_and_keeps_ids_and_rare_classes(tmp_path: Path) -> None:
    raw = make_raw(DEC, tmp_path, rows=95)
    public, private = prepare(DEC, raw, tmp_path)
    labelled = read_table(raw / "train.csv")
    train, test = train_test_split(labelled, test_size=0.1, random_state=0)
    expected = {
        public / "train.csv": train,
        public / "test.csv": test.drop(columns="Cover_Type"),
        public / "sample_submission.csv": test[["Id"]].assign(Cover_Type=2),
        private / "test.csv": test,
    }
    assert sorted(expected) == sorted([*public.iterdir(), *private.iterdir()])
    for path, table in expected.items():
        assert path.read_text() == table.to_csv(index=False)
    assert (len(train), len(test)) == (85, 10)
    both = pd.concat([read_table(public / "train.csv"), read_table(private / "test.csv")])
    assert sorted(both["Id"]) == list(range(95))
    assert (both["Cover_Type"] == 5).sum() == 1


@BOTH
def test_the_raw_file_may_be_in_kaggles_own_archive(task_id: str, tmp_path: Path) -> None:
    raw = make_raw(task_id, tmp_path, rows=50)
    plain, _ = prepare(task_id, raw, tmp_path / "plain")
    with zipfile.ZipFile(raw / f"{task_id}.zip", "w") as archive:
        archive.write(raw / "train.csv", "train.csv")
    (raw / "train.csv").unlink()
    zipped, _ = prepare(task_id, raw, tmp_path / "zipped")
    assert (plain / "train.csv").read_bytes() == (zipped / "train.csv").read_bytes()


WRONG = {
    "nothing": (None, r"train\.csv is missing"),
    "an empty file": ("", r"train\.csv is not a readable table"),
    "no label": ("id,Id,f_00\n1,1,2\n2,2,3\n", r"train\.csv has no column (target|Cover_Type)"),
    "no id": ("target,Cover_Type\n1,1\n0,2\n", r"train\.csv has no column (id|Id)"),
    "ragged rows": ("id,target\n1,1\n2,2,3,4\n", r"train\.csv is not a readable table"),
    "one row": ("id,Id,target,Cover_Type\n1,1,1,1\n", r"train\.csv has less than two rows"),
}


@BOTH
@pytest.mark.parametrize(("content", "named"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_raw_file_is_named(
    task_id: str, content: str | None, named: str, tmp_path: Path
) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    if content is not None:
        (raw / "train.csv").write_text(content)
    with pytest.raises(SetupError, match=named):
        prepare(task_id, raw, tmp_path)


def test_a_table_read_in_chunks_equals_one_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raw_files, "CHUNK_ROWS", 4)
    table = pd.DataFrame(
        {
            "grows": [1, 2, 3, 4, 500, 6, 7, 8, 70_000, 10],
            "gap in a later piece": [1, 2, 3, 4, 5, 6, 7, None, 9, 10],
            "point in a later piece": [1, 2, 3, 4, 5, 6.25, 7, 8, 9, 0.1 + 0.2],
            "words": ["a", "b", None, "d", "e,f", "g", "h", '"i"', "j", "k"],
        }
    )
    (tmp_path / "train.csv").write_text(table.to_csv(index=False))
    read = raw_files.read_large_csv(tmp_path, "train.csv", [], ["grows", "words"])
    assert read.to_csv(index=False) == read_table(tmp_path / "train.csv").to_csv(index=False)
    assert read["grows"].to_numpy().itemsize < 8


@BOTH
def test_a_twin_made_in_chunks_is_one_table(
    task_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin = load_module(FOLDERS[task_id] / "twin.py")
    monkeypatch.setattr(twin, "_PIECE_ROWS", 40)
    twin.generate(tmp_path, seed=2, rows=100)
    table = read_table(tmp_path / "train.csv")
    assert table.iloc[:, 0].tolist() == list(range(100))
    assert not table.isna().any().any()
    assert not table.duplicated(columns_but(table, "id", "Id")).any()


def test_may_has_kaggles_columns(tmp_path: Path) -> None:
    table = read_table(make_raw(MAY, tmp_path, rows=3000) / "train.csv")
    assert list(table.columns) == ["id", *(f"f_{number:02d}" for number in range(31)), "target"]
    assert table["f_27"].str.fullmatch("[A-T]{10}").all()
    kinds = table.drop(columns=["id", "f_27", "target"]).dtypes
    whole = [f"f_{number:02d}" for number in (*range(7, 19), 29, 30)]
    assert sorted(kinds[kinds == np.int64].index) == whole
    assert (kinds.drop(whole) == np.float64).all()
    assert set(table["f_29"]) == {0, 1}
    assert set(table["f_30"]) == {0, 1, 2}
    assert 0.45 < table["target"].mean() < 0.52


def test_dec_has_kaggles_columns_and_uneven_classes(tmp_path: Path) -> None:
    table = read_table(make_raw(DEC, tmp_path, rows=12_000) / "train.csv")
    assert table.shape[1] == 56
    assert (table.dtypes == np.int64).all()
    flags = table.filter(regex="^(Soil_Type|Wilderness_Area)")
    assert flags.shape[1] == 44
    assert set(np.unique(flags)) == {0, 1}
    shares = table["Cover_Type"].value_counts(normalize=True)
    assert set(shares.index) == set(range(1, 8))
    assert 0.5 < shares[2] < 0.6
    assert 0.3 < shares[1] < 0.4
    assert (table["Cover_Type"] == 5).sum() == 1
    assert shares[[3, 4, 6, 7]].sum() < 0.12


def scores(task_id: str, seed: int, root: Path) -> tuple[float, float, float]:
    """Return the scores of the sample submission, of a linear model and of boosted trees."""
    twin = read_card(FOLDERS[task_id]).twin
    assert twin is not None
    raw = make_raw(task_id, root, rows=twin.small, seed=seed)
    public, private = prepare(task_id, raw, root)
    train, test = read_table(public / "train.csv"), read_table(public / "test.csv")
    if task_id == DEC:
        train = train[train["Cover_Type"] != 5]  # boosting is unstable with a class of one row
    sample, answers = (
        read_table(public / "sample_submission.csv"),
        read_table(private / "test.csv"),
    )
    id_column, target = sample.columns
    grader = load_module(FOLDERS[task_id] / "grade.py")

    def score_of(model: BaseEstimator, features: list[str]) -> float:
        model.fit(train[features], train[target])
        chances, classes = model.predict_proba(test[features]), model.predict(test[features])
        prediction = chances[:, 1] if task_id == MAY else classes
        return float(grader.score(*grader.align(sample.assign(**{target: prediction}), answers)))

    numbers = columns_but(test.select_dtypes("number"), id_column)
    linear = score_of(make_pipeline(StandardScaler(), LogisticRegression()), numbers)
    for table in (train, test) if task_id == MAY else ():
        for place in range(10):
            table[f"letter {place}"] = table["f_27"].str[place].map(ord)
    trees = HistGradientBoostingClassifier(
        max_iter=60, learning_rate=0.15, max_leaf_nodes=12, early_stopping=False, random_state=0
    )
    boosted = score_of(trees, columns_but(test.select_dtypes("number"), id_column))
    return float(grader.score(*grader.align(sample, answers))), linear, boosted


@BOTH
@pytest.mark.parametrize("seed", [11, 12])
def test_boosted_trees_beat_a_linear_model_and_that_beats_a_guess(
    task_id: str, seed: int, tmp_path: Path
) -> None:
    guess, linear, boosted = scores(task_id, seed, tmp_path)
    assert guess + 0.06 < linear < boosted - 0.06, (guess, linear, boosted)
    assert boosted < 0.95
