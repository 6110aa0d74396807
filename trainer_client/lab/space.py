"""The programs that the lab's policy can write: ten choices, each a piece of a script.

Wrong choices stand beside right ones and end the script where such a mistake would: at an import,
while loading, at the features, at the fit, at the prediction, or with a file that cannot be graded.
Of the right ones some are fast and mediocre, some slow and good.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from textwrap import dedent
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

TASK = "tabular-playground-series-may-2022"
Actions = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Option:
    """One way to go on: its name, its code, and whether a script with it can still be valid."""

    name: str
    code: str
    is_right: bool = True


@dataclass(frozen=True, slots=True)
class Choice:
    """A place in the script and what may stand there."""

    name: str
    options: tuple[Option, ...]


def _right(name: str, code: str) -> Option:
    return Option(name, dedent(code).strip("\n"))


def _wrong(name: str, code: str) -> Option:
    return Option(name, dedent(code).strip("\n"), is_right=False)


_FOLDER = f"/workdir/{TASK}/prepared/public"

CHOICES = (
    Choice(
        "imports",
        (
            _right("pandas", "import pandas as pd"),
            _right("pandas and numpy", "import numpy as np\nimport pandas as pd"),
            _wrong("numpy alone", "import numpy as np"),
            _wrong("a package that is not there", "import pandas as pd\nimport fastgbm"),
        ),
    ),
    Choice(
        "loading",
        (
            _right("the task's folder", f'folder = "{_FOLDER}"'),
            _wrong("another site's folder", 'folder = "/kaggle/input/tabular-playground"'),
            _wrong("the current folder", 'folder = "."'),
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
                "texts as they are", "def features(table):\n    return table[[*numbers, 'f_27']]"
            ),
            _wrong("a column that is not there", "def features(table):\n    return table['f_99']"),
        ),
    ),
    Choice(
        "family",
        (
            _right("logistic regression", "linear_model LogisticRegression C=strength"),
            _right("nearest neighbours", "neighbors KNeighborsClassifier n_neighbors=size"),
            _right("tree", "tree DecisionTreeClassifier max_depth=4"),
            _right("extra trees", "ensemble ExtraTreesClassifier n_estimators=size"),
            _right("random forest", "ensemble RandomForestClassifier n_estimators=size"),
            _right(
                "histogram boosting",
                "ensemble HistGradientBoostingClassifier max_iter=4*size,learning_rate=strength",
            ),
            _right(
                "gradient boosting",
                "ensemble GradientBoostingClassifier n_estimators=size,learning_rate=strength,"
                "max_depth=5",
            ),
            _wrong("a class that is not there", "ensemble BoostedForestClassifier size=size"),
        ),
    ),
    Choice("size", tuple(_right(str(size), f"size = {size}") for size in (10, 25, 60))),
    Choice("strength", tuple(_right(str(rate), f"strength = {rate}") for rate in (0.01, 0.1, 0.5))),
    Choice(
        "target",
        (
            _right("target", 'answers = train["target"]'),
            _wrong("another column", 'answers = train["label"]'),
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
        ),
    ),
)
SIZES = tuple(len(choice.options) for choice in CHOICES)
FAMILY = next(place for place, choice in enumerate(CHOICES) if choice.name == "family")
FAMILIES = tuple(option.name for option in CHOICES[FAMILY].options)


def write(actions: Sequence[int]) -> str:
    """Return the script that these choices make."""
    said = {
        choice.name: choice.options[action] for choice, action in zip(CHOICES, actions, strict=True)
    }
    module, name, arguments = said["family"].code.split(" ")
    return "\n".join(
        (
            said["imports"].code,
            f"from sklearn.{module} import {name}",
            said["loading"].code,
            'train = pd.read_csv(f"{folder}/train.csv")',
            'test = pd.read_csv(f"{folder}/test.csv")',
            'numbers = [name for name in test if name not in ("id", "f_27")]',
            said["features"].code,
            "rows = features(train)",
            said["target"].code,
            said["size"].code,
            said["strength"].code,
            f"model = {name}({arguments.replace(',', ', ')})",
            "model.fit(rows, answers)",
            said["check"].code,
            said["prediction"].code,
            'result = pd.DataFrame({"id": test["id"], "target": guesses})',
            said["saving"].code,
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
    return hashlib.sha256(repr((TASK, CHOICES)).encode()).hexdigest()[:12]
