"""Patent phrases and the chatbot arena: split as MLE-bench does, with twins of Kaggle's form."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pandas as pd
import pytest
from sklearn.model_selection import train_test_split

from reward_server.errors import SetupError
from reward_server.grade.process import grade_all
from reward_server.tasks.folders import find_folders, read_card
from reward_server.tasks.preparation.inspection import inspect_task
from reward_server.tasks.preparation.prepare import prepare_task
from reward_server.tasks.sdk.modules import load_module
from reward_server.tasks.sdk.raw import write_zip

if TYPE_CHECKING:
    from pathlib import Path

FOLDERS = find_folders()
PATENTS, ARENA = "us-patent-phrase-to-phrase-matching", "lmsys-chatbot-arena"
OUTCOMES = ["winner_model_a", "winner_model_b", "winner_tie"]


@pytest.fixture
def raw(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    directory = tmp_path / "raw"
    directory.mkdir()
    load_module(FOLDERS[request.param] / "twin.py").generate(directory, seed=5, rows=205)
    return directory


def prepare(task_id: str, raw: Path, data: Path) -> Path:
    prepare_task(FOLDERS[task_id], data, raw=raw)
    return data / task_id / "prepared"


def csv_of(table: pd.DataFrame) -> str:
    text: str = table.to_csv(index=False)
    return text


@pytest.mark.parametrize("raw", [PATENTS], indirect=True)
def test_patents_are_split_as_mle_bench_splits_them(raw: Path, tmp_path: Path) -> None:
    prepared = prepare(PATENTS, raw, tmp_path / "data")
    train, test = train_test_split(pd.read_csv(raw / "train.csv"), test_size=0.1, random_state=0)
    assert len(test) == 21
    assert (prepared / "public/train.csv").read_text() == csv_of(train)
    assert (prepared / "private/test.csv").read_text() == csv_of(test)
    shown = test[["id", "anchor", "target", "context"]]
    assert (prepared / "public/test.csv").read_text() == csv_of(shown)
    sample = (prepared / "public/sample_submission.csv").read_text().splitlines()
    assert sample == ["id,score", *(f"{name},0" for name in test["id"])]


@pytest.mark.parametrize("raw", [ARENA], indirect=True)
def test_the_arena_is_split_as_mle_bench_splits_it(raw: Path, tmp_path: Path) -> None:
    prepared = prepare(ARENA, raw, tmp_path / "data")
    train, test = train_test_split(pd.read_csv(raw / "train.csv"), test_size=0.1, random_state=0)
    assert len(test) == 21
    assert (prepared / "public/train.csv").read_text() == csv_of(train)
    assert (prepared / "private/answers.csv").read_text() == csv_of(test)
    shown = test[["id", "prompt", "response_a", "response_b"]]
    assert (prepared / "public/test.csv").read_text() == csv_of(shown)
    sample = (prepared / "public/sample_submission.csv").read_text().splitlines()
    third = "0.3333333333333333"
    assert sample[0] == "id,winner_model_a,winner_model_b,winner_tie"
    assert sample[1:] == [f"{number},{third},{third},{third}" for number in test["id"]]


@pytest.mark.parametrize("raw", [PATENTS, ARENA], indirect=True)
def test_the_raw_file_may_be_in_the_competitions_archive(
    raw: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    task_id = request.node.callspec.params["raw"]
    plain = prepare_task(FOLDERS[task_id], tmp_path / "plain", raw=raw)
    (tmp_path / "zipped").mkdir()
    table = (raw / "train.csv").read_bytes()
    write_zip(tmp_path / "zipped" / f"{task_id}.zip", [("train.csv", table)])
    zipped = prepare_task(FOLDERS[task_id], tmp_path / "data", raw=tmp_path / "zipped")
    assert zipped.data_digest == plain.data_digest


@pytest.mark.parametrize("task_id", [PATENTS, ARENA])
def test_a_missing_raw_file_is_named(task_id: str, tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    with pytest.raises(SetupError, match=r"train\.csv is missing"):
        prepare(task_id, tmp_path / "raw", tmp_path / "data")


@pytest.mark.parametrize(
    ("raw", "column"), [(PATENTS, "score"), (ARENA, "winner_tie")], indirect=["raw"]
)
def test_a_missing_column_is_named(
    raw: Path, column: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    path = raw / "train.csv"
    path.write_text(csv_of(pd.read_csv(path).drop(columns=column)))
    with pytest.raises(SetupError, match=rf"train\.csv has no column {column}"):
        prepare(request.node.callspec.params["raw"], raw, tmp_path / "data")


def test_a_sample_without_a_score_is_fine_where_the_card_has_a_baseline(tmp_path: Path) -> None:
    assert read_card(FOLDERS[PATENTS]).baseline == 0.0
    folder = tmp_path / "patents"
    shutil.copytree(FOLDERS[PATENTS], folder)
    prepare_task(folder, tmp_path / "data")
    assert inspect_task(folder, tmp_path / "data", grade_all).failures == ()
    card = (folder / "task.toml").read_text()
    lines = [line for line in card.splitlines() if not line.startswith("baseline")]
    (folder / "task.toml").write_text("\n".join(lines))
    (problem,) = inspect_task(folder, tmp_path / "data", grade_all).failures
    assert "the sample submission is not valid" in problem.sentence


@pytest.mark.parametrize("raw", [PATENTS], indirect=True)
def test_made_up_phrases_have_the_form_of_kaggles(raw: Path) -> None:
    load_module(FOLDERS[PATENTS] / "twin.py").generate(raw, seed=6, rows=3000)
    pairs = pd.read_csv(raw / "train.csv")
    assert list(pairs.columns) == ["id", "anchor", "target", "context", "score"]
    assert len(pairs) == 3000
    assert pairs["id"].is_unique
    assert pairs["id"].str.fullmatch("[0-9a-f]{16}").all()
    assert pairs["context"].str.fullmatch("[A-H][0-9]{2}").all()
    shares = pairs["score"].value_counts(normalize=True).sort_index()
    assert shares.index.tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert shares.to_numpy() == pytest.approx([0.205, 0.316, 0.337, 0.110, 0.032], abs=0.002)
    phrases = ["anchor", "target"]
    assert not pairs.duplicated([*phrases, "context"]).any()
    recurring = pairs[pairs.duplicated(phrases, keep=False)]
    assert 0.1 < len(recurring) / len(pairs) < 0.6
    assert recurring.groupby(phrases)["score"].nunique().max() > 1


@pytest.mark.parametrize("raw", [ARENA], indirect=True)
def test_made_up_conversations_have_the_form_of_kaggles(raw: Path) -> None:
    load_module(FOLDERS[ARENA] / "twin.py").generate(raw, seed=6, rows=1500)
    table = pd.read_csv(raw / "train.csv")
    texts = ["prompt", "response_a", "response_b"]
    assert list(table.columns) == ["id", "model_a", "model_b", *texts, *OUTCOMES]
    assert table["id"].is_unique
    assert table["id"].dtype.kind == "i"
    assert table[OUTCOMES].sum(axis=1).eq(1).all()
    assert table["winner_tie"].mean() == pytest.approx(0.31, abs=0.01)
    assert (table["model_a"] != table["model_b"]).all()
    lengths = pd.DataFrame({name: table[name].map(json.loads).map(len) for name in texts})
    assert set(lengths["prompt"]) == {1, 2}
    assert lengths.nunique(axis=1).eq(1).all()
    assert not table.duplicated(texts).any()


@pytest.mark.parametrize("raw", [ARENA], indirect=True)
def test_models_differ_in_strength_beyond_chance(raw: Path) -> None:
    load_module(FOLDERS[ARENA] / "twin.py").generate(raw, seed=7, rows=3000)
    table = pd.read_csv(raw / "train.csv")
    wins = table.groupby("model_a")["winner_model_a"].mean()
    assert wins.max() - wins.min() > 0.3
