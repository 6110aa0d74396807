"""The leak lint finds what gives a label away, and only that."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from reward_server.tasks.folders import find_folders, read_card
from reward_server.tasks.leaks import find_leaks, read_table
from reward_server.tasks.preparation import prepare_task

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pandas as pd

FOLDERS = find_folders()
PIZZA, SPOOKY, NOMAD = (
    "random-acts-of-pizza",
    "spooky-author-identification",
    "nomad2018-predict-transparent-conductors",
)


def leaks_after(task_id: str, data: Path, change: Callable[..., pd.DataFrame]) -> set[str]:
    """Prepare a twin, change its public test table, and return the places of leaks."""
    prepare_task(FOLDERS[task_id], data)
    card, prepared = read_card(FOLDERS[task_id]), data / task_id / "prepared"
    test_file, answers = (
        prepared / "public" / card.target.test_file,
        prepared / "private" / card.answers,
    )
    changed = change(read_table(test_file), read_table(answers))
    if test_file.suffix == ".json":
        test_file.write_text(json.dumps(changed.to_dict("records")))
    else:
        changed.to_csv(test_file, index=False)
    return {leak.place for leak in find_leaks(card, prepared / "public", answers)}


def givers_known_for(share: float) -> Callable[..., pd.DataFrame]:
    def change(test: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
        luck = np.random.default_rng(0).random(len(test)) < share
        known = luck & (answers["requester_received_pizza"] == 1)
        names = [f"giver{n}" if is_known else "N/A" for n, is_known in enumerate(known)]
        return test.assign(giver_username_if_known=names)

    return change


@pytest.mark.parametrize("share", [1.0, 0.3])
def test_the_givers_name_is_a_leak_even_when_it_is_seldom_known(
    tmp_path: Path, share: float
) -> None:
    leaks = leaks_after(PIZZA, tmp_path, givers_known_for(share))
    assert leaks == {"test.json:giver_username_if_known"}


def test_a_givers_name_without_information_is_none(tmp_path: Path) -> None:
    def change(test: pd.DataFrame, _: pd.DataFrame) -> pd.DataFrame:
        is_known = np.random.default_rng(0).random(len(test)) < 0.2
        names = np.where(is_known, [f"giver{n}" for n in range(len(test))], "N/A")
        return test.assign(giver_username_if_known=names)

    assert leaks_after(PIZZA, tmp_path, change) == set()


def one_hot(answers: pd.DataFrame) -> pd.Series:
    return answers.set_index("id").idxmax(axis=1).reset_index(drop=True)


PLANTED = {
    "the label itself": (
        SPOOKY,
        lambda test, answers: test.assign(author=one_hot(answers)),
        "test.csv:author",
    ),
    "a code of the label": (
        SPOOKY,
        lambda test, answers: test.assign(
            shelf=one_hot(answers).map({"EAP": 7, "HPL": 3, "MWS": 5})
        ),
        "test.csv:shelf",
    ),
    "a monotone of the label": (
        NOMAD,
        lambda test, answers: test.assign(colour=-np.log1p(answers["bandgap_energy_ev"])),
        "test.csv:colour",
    ),
    "rows sorted by label": (
        SPOOKY,
        lambda test, answers: test.iloc[np.argsort(one_hot(answers), kind="stable")],
        "test.csv:id",
    ),
    "rows in the order of an energy": (
        NOMAD,
        lambda test, answers: test.iloc[np.argsort(answers["bandgap_energy_ev"])],
        "test.csv:id",
    ),
}


@pytest.mark.parametrize(("task_id", "change", "place"), PLANTED.values(), ids=PLANTED.keys())
def test_a_planted_leak_is_found(
    tmp_path: Path, task_id: str, change: Callable[..., pd.DataFrame], place: str
) -> None:
    assert place in leaks_after(task_id, tmp_path, change)


@pytest.mark.parametrize("task_id", FOLDERS)
def test_test_rows_in_the_train_file_are_found(task_id: str, tmp_path: Path) -> None:
    prepare_task(FOLDERS[task_id], tmp_path)
    card, public = read_card(FOLDERS[task_id]), tmp_path / task_id / "prepared" / "public"
    (public / card.target.train_file).write_bytes((public / card.target.test_file).read_bytes())
    answers = tmp_path / task_id / "prepared" / "private" / card.answers
    assert card.target.train_file in {leak.place for leak in find_leaks(card, public, answers)}


def test_a_sample_submission_made_of_the_answers_is_found(tmp_path: Path) -> None:
    prepare_task(FOLDERS[PIZZA], tmp_path)
    prepared = tmp_path / PIZZA / "prepared"
    answers, sample = prepared / "private/test.csv", prepared / "public/sampleSubmission.csv"
    sample.write_bytes(answers.read_bytes())
    leaks = find_leaks(read_card(FOLDERS[PIZZA]), prepared / "public", answers)
    assert [leak.place for leak in leaks] == ["sampleSubmission.csv:requester_received_pizza"]
