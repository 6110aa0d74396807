"""Made-up conversations with two made-up models, with Kaggle's columns and a planted taste.

People prefer answers that are longer, up to a point, that keep to the subject of the question
and that use turns of phrase which happen to be liked: which these are, and how strong each
model is beyond what its words show, is drawn anew for every twin. When two answers are about
as good, people call it a tie.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reward_server.tasks.sdk.words import WordLists

if TYPE_CHECKING:
    from pathlib import Path

WORDS = WordLists(__file__)
SUBJECTS = WORDS.groups("subjects")
OUTCOMES = ("winner_model_a", "winner_model_b", "winner_tie")
_MODELS = 24
_MOST_STATEMENTS, _ENOUGH_STATEMENTS = 14, 11
_TURNS_USED = 3
_LONG_SHARE, _MISSING_SHARE, _TIE_SHARE = 0.15, 0.003, 0.31
_LARGEST_ID = 2**32

Numbers: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Answers:
    """One side of all conversations: which model, how much it says, what, and how."""

    models: Codes
    statements: Codes
    on_subject: Numbers
    turns: Codes
    has_list: NDArray[np.bool_]
    is_missing: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Models:
    """Habits of the models, and their strength beyond what their words show."""

    names: NDArray[np.str_]
    verbosity: Numbers
    focus: Numbers
    lists: Numbers
    strength: Numbers


def generate(raw: Path, seed: int, rows: int) -> None:
    """Write train.csv with `rows` conversations."""
    rng = np.random.default_rng(seed)
    models = _models(rng)
    first = rng.integers(0, _MODELS, rows)
    second = (first + rng.integers(1, _MODELS, rows)) % _MODELS
    sides = [_answers(rng, models, chosen) for chosen in (first, second)]
    likings = rng.permutation(np.linspace(-1, 1, len(WORDS.turns)))
    worth = [_worth(models, side, likings) for side in sides]
    outcome = _outcomes(rng, worth[0] - worth[1])
    subjects = rng.integers(0, len(SUBJECTS), rows)
    lengths = np.where(rng.random(rows) < _LONG_SHARE, 2, 1)
    table = pd.DataFrame(
        {
            "id": _ids(rng, rows),
            "model_a": models.names[first],
            "model_b": models.names[second],
            "prompt": _prompts(rng, subjects, lengths),
            "response_a": _responses(rng, sides[0], subjects, lengths),
            "response_b": _responses(rng, sides[1], subjects, lengths),
        }
    )
    for code, name in enumerate(OUTCOMES):
        table[name] = (outcome == code).astype(int)
    table.to_csv(raw / "train.csv", index=False)


def _models(rng: np.random.Generator) -> Models:
    names = np.array([f"{maker}-{suffix}" for maker in WORDS.makers for suffix in WORDS.suffixes])
    return Models(
        names=rng.choice(names, _MODELS, replace=False),
        verbosity=rng.permutation(np.linspace(3.0, 9.0, _MODELS)),
        focus=rng.permutation(np.linspace(2.0, 6.0, _MODELS)),
        lists=rng.permutation(np.linspace(0.05, 0.6, _MODELS)),
        strength=rng.permutation(np.linspace(-0.6, 0.6, _MODELS)),
    )


def _answers(rng: np.random.Generator, models: Models, chosen: Codes) -> Answers:
    rows = len(chosen)
    orders = rng.random((rows, len(WORDS.turns))).argsort(axis=1)
    return Answers(
        models=chosen,
        statements=(1 + rng.poisson(models.verbosity[chosen])).clip(1, _MOST_STATEMENTS),
        on_subject=rng.beta(models.focus[chosen], 2.0),
        turns=orders[:, :_TURNS_USED],
        has_list=rng.random(rows) < models.lists[chosen],
        is_missing=rng.random(rows) < _MISSING_SHARE,
    )


def _worth(models: Models, answers: Answers, likings: Numbers) -> Numbers:
    """Return how much people would like each answer."""
    length = 3.2 * np.log(answers.statements.clip(max=_ENOUGH_STATEMENTS))
    phrases = 1.1 * likings[answers.turns].sum(axis=1)
    said = length + 3.0 * answers.on_subject + phrases + 0.4 * answers.has_list
    return np.where(answers.is_missing, -3.0, said + models.strength[answers.models])


def _outcomes(rng: np.random.Generator, advantage: Numbers) -> Codes:
    """Return 0 or 1 for the winner and 2 for a tie, which is likelier the closer the two are."""
    felt = advantage + rng.logistic(scale=0.8, size=len(advantage))
    is_tie = np.abs(felt) < np.quantile(np.abs(felt), _TIE_SHARE)
    return np.where(is_tie, 2, np.where(felt > 0, 0, 1))


def _ids(rng: np.random.Generator, rows: int) -> Codes:
    numbers = np.unique(rng.integers(1, _LARGEST_ID, 2 * rows))
    return np.sort(rng.choice(numbers, rows, replace=False))


def _prompts(rng: np.random.Generator, subjects: Codes, lengths: Codes) -> list[str]:
    vocabularies = list(SUBJECTS.items())
    prompts = []
    for subject, length in zip(subjects, lengths, strict=True):
        name, words = vocabularies[subject]
        questions = [
            WORDS.questions[number] for number in rng.integers(0, len(WORDS.questions), length)
        ]
        pairs = [_two_of(rng, words) for _ in questions]
        filled = [
            question.format(subject=name, one=one, two=two)
            for question, (one, two) in zip(questions, pairs, strict=True)
        ]
        prompts.append(json.dumps(filled))
    return prompts


def _responses(
    rng: np.random.Generator, answers: Answers, subjects: Codes, lengths: Codes
) -> list[str]:
    texts = []
    for row, (subject, length) in enumerate(zip(subjects, lengths, strict=True)):
        said = _statements(rng, subject, answers.statements[row], answers.on_subject[row])
        turns = [WORDS.turns[turn] for turn in answers.turns[row]]
        joint = "\n- " if answers.has_list[row] else " "
        halves = [said] if length == 1 else [said[::2], said[1::2]]
        parts: list[str | None] = [joint.join([turns[0], *half]) for half in halves]
        parts[-1] = f"{turns[1]} {parts[-1]}\n\n{turns[2]}"
        if answers.is_missing[row]:
            parts[-1] = None
        texts.append(json.dumps(parts))
    return texts


def _statements(rng: np.random.Generator, subject: int, total: int, on_subject: float) -> list[str]:
    vocabularies = list(SUBJECTS.values())
    said: list[str] = []
    kept = rng.random(total) < on_subject
    for number in rng.permutation(_MOST_STATEMENTS)[:total]:
        is_kept = kept[len(said)]
        elsewhere = (subject + rng.integers(1, len(vocabularies))) % len(vocabularies)
        one, two = _two_of(rng, vocabularies[subject if is_kept else elsewhere])
        said.append(WORDS.statements[number % len(WORDS.statements)].format(one=one, two=two))
    return said


def _two_of(rng: np.random.Generator, words: tuple[str, ...]) -> tuple[str, str]:
    first = int(rng.integers(len(words)))
    second = (first + int(rng.integers(1, len(words)))) % len(words)
    return words[first], words[second]
