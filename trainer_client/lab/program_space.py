"""The programs that the lab's policy can write: ten choices, each a piece of a script.

The plan comes first, as in the paper's answers: a family of models, its size and its strength. Then
the script is filled in. Wrong choices stand beside right ones and end the script where such a
mistake would: at an import, while loading, at the features, at the fit, at the prediction, or with
a file that cannot be graded. Of the families two are fast and mediocre, four slow and good.

How likely an option is before any training is its weight: like a language model, an informed policy
knows how to begin a script better than how to end it. For one that knows nothing every mistake is
twice as likely as what is right.
"""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_MISTAKEN = 2.0
TASK = "tabular-playground-series-may-2022"
Actions = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Option:
    """One way to go on: its code, and whether a script with it can still be valid."""

    name: str
    code: str
    is_right: bool = True
    weight: float = 1.0

    @property
    def blind_weight(self) -> float:
        """How likely it is for a policy that knows nothing: there are more ways to be wrong."""
        return 1.0 if self.is_right else _MISTAKEN


@dataclass(frozen=True, slots=True)
class Choice:
    """A position in the script and its options."""

    name: str
    options: tuple[Option, ...]


def _read(file: Path) -> Iterator[Choice]:
    for name, options in tomllib.loads(file.read_text()).items():
        yield Choice(name, tuple(Option(**one) for one in options))


CHOICES = tuple(_read(Path(__file__).with_name("program_space.toml")))
SIZES = tuple(len(choice.options) for choice in CHOICES)
FAMILY = 0
FAMILIES = tuple(option.name for option in CHOICES[FAMILY].options)
SLOW_FAMILIES = ("extra trees", "random forest", "boosting", "boosting, searched")


def write(actions: Sequence[int]) -> str:
    """Return the script that these choices make."""
    code = {
        choice.name: choice.options[action].code
        for choice, action in zip(CHOICES, actions, strict=True)
    }
    needed, model = code["family"].split("\nmodel = ")
    return "\n".join(
        (
            code["imports"],
            needed,
            code["loading"],
            'train = pd.read_csv(f"{folder}/train.csv", nrows=3000)',
            'test = pd.read_csv(f"{folder}/test.csv")',
            'numbers = [name for name in test if name not in ("id", "f_27")]',
            code["features"],
            "rows = features(train)",
            code["target"],
            code["size"],
            code["strength"],
            f"model = {model}",
            "model.fit(rows, answers)",
            code["check"],
            code["prediction"],
            'result = pd.DataFrame({"id": test["id"], "target": guesses})',
            code["saving"],
            "",
        )
    )


def is_right(actions: Sequence[int]) -> bool:
    """Tell whether no choice is a mistake."""
    return all(
        choice.options[action].is_right for choice, action in zip(CHOICES, actions, strict=True)
    )


def fingerprint() -> str:
    """Return what changes when any of this does: results of different spaces never mix."""
    options = [
        [(one.code, one.weight, one.blind_weight) for one in choice.options] for choice in CHOICES
    ]
    return hashlib.sha256(repr((TASK, options)).encode()).hexdigest()[:12]
