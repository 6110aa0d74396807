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
from dataclasses import dataclass
from textwrap import dedent
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def _right(name: str, code: str) -> Option:
    return Option(name, dedent(code).strip("\n"))


def _wrong(name: str, code: str, weight: float = 1.0) -> Option:
    return Option(name, dedent(code).strip("\n"), is_right=False, weight=weight)


def _family(name: str, path: str, arguments: str, weight: float = 1.0) -> Option:
    """Return code whose last line makes the model; those before import what it needs."""
    module, kind = path.split(".")
    return Option(
        name, f"from sklearn.{module} import {kind}\nmodel = {kind}({arguments})", weight=weight
    )


_FOLDER = f"/workdir/{TASK}/prepared/public"
_RARE = 0.15
_PLAIN = 0.6

CHOICES = (
    Choice(
        "family",
        (
            _family("logistic regression", "linear_model.LogisticRegression", "C=strength", _PLAIN),
            _family("tree", "tree.DecisionTreeClassifier", "max_depth=4", _PLAIN),
            _family("extra trees", "ensemble.ExtraTreesClassifier", "n_estimators=3 * size"),
            _family("random forest", "ensemble.RandomForestClassifier", "n_estimators=3 * size"),
            _family(
                "boosting",
                "ensemble.HistGradientBoostingClassifier",
                "max_iter=5 * size, learning_rate=strength",
            ),
            _right(
                "boosting, searched",
                """
                from sklearn.ensemble import HistGradientBoostingClassifier
                from sklearn.model_selection import GridSearchCV
                rates = {"learning_rate": [0.1, 0.3]}
                model = GridSearchCV(HistGradientBoostingClassifier(max_iter=2 * size), rates, cv=2)
                """,
            ),
            _wrong(
                "a class that is not there",
                """
                from sklearn.ensemble import BoostedForestClassifier
                model = BoostedForestClassifier()
                """,
                _RARE,
            ),
        ),
    ),
    Choice("size", tuple(_right(str(size), f"size = {size}") for size in (20, 30, 45))),
    Choice("strength", tuple(_right(str(rate), f"strength = {rate}") for rate in (0.01, 0.1, 0.5))),
    Choice(
        "imports",
        (
            _right("pandas", "import pandas as pd"),
            _right("pandas and numpy", "import numpy as np\nimport pandas as pd"),
            _wrong("numpy alone", "import numpy as np", _RARE),
            _wrong("a package that is not there", "import pandas as pd\nimport fastgbm", _RARE),
        ),
    ),
    Choice(
        "loading",
        (
            _right("the task's folder", f'folder = "{_FOLDER}"'),
            _wrong("another site's folder", 'folder = "/kaggle/input/tabular-playground"', _RARE),
        ),
    ),
    Choice(
        "features",
        (
            _right("numbers", "def features(table):\n    return table[numbers]"),
            _right(
                "numbers and letters",
                """
                def features(table):
                    letters = [table["f_27"].str[place].map(ord) for place in range(10)]
                    letters = pd.concat(letters, axis=1, keys=[f"letter_{i}" for i in range(10)])
                    return pd.concat([table[numbers], letters], axis=1)
                """,
            ),
            _wrong(
                "texts as they are",
                "def features(table):\n    return table[[*numbers, 'f_27']]",
                _RARE,
            ),
            _wrong(
                "a column that is not there",
                "def features(table):\n    return table['f_99']",
                _RARE,
            ),
        ),
    ),
    Choice(
        "target",
        (
            _right("target", 'answers = train["target"]'),
            _wrong("another column", 'answers = train["label"]', _RARE),
        ),
    ),
    Choice(
        "check",
        (
            _right("none", ""),
            _right(
                "on the rows it was trained with",
                """
                from sklearn.metrics import roc_auc_score
                loss = 1 - roc_auc_score(answers, model.predict_proba(rows)[:, 1])
                print("training loss:", loss)
                """,
            ),
        ),
    ),
    Choice(
        "prediction",
        (
            _right("probabilities", "guesses = model.predict_proba(features(test))[:, 1]"),
            _right("labels", "guesses = model.predict(features(test))"),
            _wrong("of the wrong rows", "guesses = model.predict_proba(rows)[:, 1]"),
            _wrong("a method that is not there", "guesses = model.forecast(features(test))"),
        ),
    ),
    Choice(
        "saving",
        (
            _right("as asked for", 'result.to_csv("submission.csv", index=False)'),
            _wrong("under another name", 'result.to_csv("predictions.csv", index=False)'),
            _wrong("without ids", 'result[["target"]].to_csv("submission.csv", index=False)'),
            _right("with the row numbers as well", 'result.to_csv("submission.csv")'),
        ),
    ),
)
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
