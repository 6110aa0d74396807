from __future__ import annotations

import ast

import pytest

from reward_server.instrument.static.analyzer import find_markers
from reward_server.instrument.verification import verify
from reward_server.model import Marker, Milestone
from tests.unit.instrument.labelled import SPLITS, WORDS, Labelled, compare, read_corpus

TASKS = (
    "detecting-insults-in-social-commentary",
    "learning-agency-lab-automated-essay-scoring-2",
    "random-acts-of-pizza",
    "tweet-sentiment-extraction",
    "tabular-playground-series-may-2022",
    "tabular-playground-series-dec-2021",
    "us-patent-phrase-to-phrase-matching",
    "plant-pathology-2020-fgvc7",
    "leaf-classification",
    "nomad2018-predict-transparent-conductors",
    "spooky-author-identification",
    "lmsys-chatbot-arena",
)


@pytest.mark.parametrize("split", SPLITS)
def test_precision_and_recall_on_the_corpus_are_high(split: str) -> None:
    programs = read_corpus(split)
    tally = compare((program, find_markers(ast.parse(program.code))) for program in programs)
    summary = f"{split}: precision {tally.precision():.3f}, recall {tally.recall():.3f}"
    misses = "\n".join((summary, *tally.listing))
    assert tally.precision() >= 0.95, misses
    assert tally.recall() >= 0.9, misses


@pytest.mark.parametrize("split", SPLITS)
def test_every_marker_in_the_corpus_verifies(split: str) -> None:
    for program in read_corpus(split):
        assert verify(program.code, find_markers(ast.parse(program.code))), program.name


def test_the_corpus_is_broad() -> None:
    halves = [read_corpus(split) for split in SPLITS]
    assert min(len(half) for half in halves) >= 40
    programs = [program for half in halves for program in half]
    assert len({program.name.partition("/")[2] for program in programs}) == len(programs)
    assert not [task for task in TASKS if not any(task in program.code for program in programs)]
    for milestone in Milestone:
        assert sum(milestone in program.required for program in programs) >= 40, milestone


@pytest.fixture
def program() -> Labelled:
    return next(p for p in read_corpus("dev") if p.name == "dev/pizza_tfidf_logreg")


def place_of(program: Labelled, text: str) -> tuple[int, int]:
    return next(
        (number, 0) for number, line in enumerate(program.code.split("\n"), 1) if text in line
    )


@pytest.mark.parametrize(
    ("after", "is_right"),
    [
        ("model = LogisticRegression", False),
        ("model.fit(X_train", True),
        ("val_pred =", True),
        ("print('Train log loss", False),
        ("import pandas", False),
    ],
)
def test_a_marker_is_right_after_its_step_and_before_the_next(
    program: Labelled, after: str, *, is_right: bool
) -> None:
    marker = Marker(*place_of(program, after), Milestone.TRAINED_MODEL)
    tally = compare([(program, [marker])])
    assert tally.found[Milestone.TRAINED_MODEL] == is_right
    assert tally.wrong[Milestone.TRAINED_MODEL] != is_right
    assert sum(tally.missed.values()) == len(WORDS) - is_right


def test_an_early_marker_is_wrong_however_many_right_ones_follow(program: Labelled) -> None:
    places = [place_of(program, "model = Logistic"), place_of(program, "model.fit(X_train")]
    tally = compare([(program, [Marker(*place, Milestone.TRAINED_MODEL) for place in places])])
    assert (tally.found.total(), tally.wrong.total()) == (0, 1)
    assert any("not trained model: model = LogisticRegression" in line for line in tally.listing)


def test_labels_never_reach_the_instrumenters() -> None:
    for split in SPLITS:
        assert not any("#=" in program.code for program in read_corpus(split))
