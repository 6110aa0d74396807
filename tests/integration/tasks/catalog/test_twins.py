"""Each twin tells a guess, a plain model and a better model clearly apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reward_server.tasks.folders import find_folders, read_card
from reward_server.tasks.sdk.modules import load_module
from tests.support.public_tables import read_table

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from sklearn.base import BaseEstimator

    from reward_server.tasks.base import Card

FOLDERS = find_folders()
PIZZA, SPOOKY, NOMAD = (
    "random-acts-of-pizza",
    "spooky-author-identification",
    "nomad2018-predict-transparent-conductors",
)
SEEDS = (11, 12, 13)


@dataclass(frozen=True)
class Data:
    """Prepared data of one twin and its grader."""

    root: Path
    card: Card
    grader: Any
    train: pd.DataFrame
    test: pd.DataFrame
    sample: pd.DataFrame

    def score(self, submission: pd.DataFrame) -> float:
        answers = read_table(self.root / "private" / self.card.answers)
        return float(self.grader.score(*self.grader.align(submission, answers)))


def make_data(task_id: str, seed: int, root: Path) -> Data:
    folder, card = FOLDERS[task_id], read_card(FOLDERS[task_id])
    raw, public, private = (root / name for name in ("raw", "public", "private"))
    for directory in (raw, public, private):
        directory.mkdir()
    assert card.twin is not None
    assert card.target is not None
    load_module(folder / "twin.py").generate(raw, seed=seed, rows=card.twin.small)
    load_module(folder / "prepare.py").prepare(raw, public, private)
    files = (card.target.train_file, card.target.test_file, card.sample_submission)
    tables = (read_table(public / name) for name in files)
    return Data(root, card, load_module(folder / "grade.py"), *tables)


@pytest.mark.parametrize("seed", SEEDS)
def test_pizza_rewards_interactions_over_a_linear_model_over_a_guess(
    seed: int, tmp_path: Path
) -> None:
    data = make_data(PIZZA, seed, tmp_path)
    columns = data.test.select_dtypes("number").columns
    received = data.train["requester_received_pizza"].astype(int)

    def features(table: pd.DataFrame) -> pd.DataFrame:
        return table[columns].assign(
            length=table["request_text_edit_aware"].str.len(),
            second_of_day=table["unix_timestamp_of_request"] % 86_400,
        )

    def score_of(model: BaseEstimator) -> float:
        model.fit(features(data.train), received)
        chance = model.predict_proba(features(data.test))[:, 1]
        return data.score(data.sample.assign(requester_received_pizza=chance))

    guess = data.score(data.sample)
    linear = score_of(make_pipeline(StandardScaler(), LogisticRegression()))
    boosted = score_of(
        HistGradientBoostingClassifier(max_iter=100, max_leaf_nodes=8, learning_rate=0.06)
    )
    assert guess == 0.5
    assert guess + 0.04 < linear < boosted - 0.05
    assert boosted < 0.95


@pytest.mark.parametrize("seed", SEEDS)
def test_spooky_rewards_characters_over_words_over_a_guess(seed: int, tmp_path: Path) -> None:
    data = make_data(SPOOKY, seed, tmp_path)

    def score_of(vectorizer: TfidfVectorizer, strength: float) -> float:
        model = make_pipeline(vectorizer, LogisticRegression(C=strength, max_iter=500))
        model.fit(data.train["text"], data.train["author"])
        chances = model.predict_proba(data.test["text"])
        return data.score(data.sample.assign(**dict(zip(model.classes_, chances.T, strict=True))))

    guess = data.score(data.sample)
    words = score_of(TfidfVectorizer(), 1)
    characters = score_of(
        TfidfVectorizer(analyzer="char", ngram_range=(1, 4), min_df=3, sublinear_tf=True), 3
    )
    assert 1.05 < guess < 1.12
    assert 0.2 < characters + 0.07 < words < guess - 0.3


@pytest.mark.parametrize("seed", SEEDS)
def test_nomad_rewards_curves_over_a_linear_model_over_a_guess(seed: int, tmp_path: Path) -> None:
    data = make_data(NOMAD, seed, tmp_path)
    energies, features = list(data.sample.columns[1:]), list(data.test.columns[1:])

    def score_of(model: BaseEstimator) -> float:
        submission = data.sample.copy()
        for energy in energies:
            model.fit(data.train[features], np.log1p(data.train[energy]))
            submission[energy] = np.expm1(model.predict(data.test[features])).clip(0)
        return data.score(submission)

    guess = data.score(data.sample.assign(**data.train[energies].median()))
    linear, boosted = score_of(Ridge()), score_of(HistGradientBoostingRegressor(max_iter=120))
    assert boosted > 0.02
    assert boosted * 1.4 < linear < guess / 1.5


@pytest.mark.parametrize("task_id", FOLDERS)
def test_a_twin_is_made_by_its_seed_and_its_number_of_rows(task_id: str, tmp_path: Path) -> None:
    twin = load_module(FOLDERS[task_id] / "twin.py")
    made = []
    for number, seed in enumerate((1, 1, 2)):
        raw = tmp_path / str(number)
        raw.mkdir()
        twin.generate(raw, seed=seed, rows=50)
        files = (path for path in raw.rglob("*") if path.is_file())
        made.append({str(path.relative_to(raw)): path.read_bytes() for path in files})
    assert made[0] == made[1]
    assert all(made[0][name] != made[2][name] for name in made[0])
