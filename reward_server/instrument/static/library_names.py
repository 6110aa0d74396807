"""What the names that common packages define mean: functions, classes, methods, attributes.

The names are in `library_names.toml`; this module reads them and knows no syntax tree. A name that
is not listed means nothing, so a program earns no milestone by calling a function of its own.
"""

from __future__ import annotations

import tomllib
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Role(Enum):
    """What calling (or deriving from) a qualified name does."""

    LOAD = auto()
    PARSE = auto()
    READER = auto()
    CONSUME = auto()
    OPEN = auto()
    ARCHIVE = auto()
    FILE_PATH = auto()
    MODEL = auto()
    META_MODEL = auto()
    PIPELINE = auto()
    NETWORK = auto()
    SAVED_NETWORK = auto()
    LAYER = auto()
    TRANSFORMER = auto()
    SPLITTER = auto()
    SPLIT = auto()
    CROSS_SCORE = auto()
    CROSS_PREDICT = auto()
    TRAIN = auto()
    TRAINER = auto()
    LEARNER = auto()
    TABLE = auto()
    METRIC = auto()
    LOSS_FUNCTION = auto()
    LOSS = auto()
    NO_GRAD = auto()
    COPY = auto()
    STUDY = auto()
    DATASET = auto()
    RANDOM_SPLIT = auto()
    SUBSET = auto()
    SHUFFLED_ROWS = auto()
    SAVE = auto()
    LOAD_SAVED = auto()
    SOLVE = auto()
    PRODUCT = auto()
    RECORD = auto()
    CROSS_TRAIN = auto()
    REDUCE = auto()
    LENGTH = auto()
    ENUMERATE = auto()
    NEXT = auto()
    ZIP = auto()
    SAME = auto()


# A list of names is one text in the file, split at white space.
_TABLE: dict[str, dict[str, str]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
_ROLES = {name: Role[role] for role, names in _TABLE["roles"].items() for name in names.split()}
_MODULE_RULES = {name: tuple(words.split()) for name, words in _TABLE["module_rules"].items()}


def role_of(path: str) -> Role | None:
    """Return what a qualified name means, or nothing for a name that is not known."""
    path = _canonical(path)
    exact = _ROLES.get(path)
    if exact is not None:
        return exact
    rule = _RULES.get(path.partition(".")[0])
    if rule is not None:
        return rule(path)
    if path.startswith(_MODULE_RULES["model_beginnings"]):
        return Role.MODEL
    return Role.TRANSFORMER if path.startswith(_MODULE_RULES["transformer_modules"]) else None


def _canonical(path: str) -> str:
    for home in _MODULE_RULES["keras_homes"]:
        if path.startswith(home):
            return "keras." + path.removeprefix(home)
    if path.startswith("statsmodels."):
        return "statsmodels." + path.rpartition(".")[2]
    return path


def _tables_role(path: str) -> Role | None:
    _, _, name = path.partition(".")
    return Role.LOAD if name.startswith(("read_", "scan_")) and "." not in name else None


def _sklearn_role(path: str) -> Role | None:
    module, _, name = path.rpartition(".")
    if module == "sklearn.metrics":
        metric = name.endswith(_MODULE_RULES["metric_endings"]) or name in _MODULE_RULES["metrics"]
        return Role.METRIC if metric else None
    if path.startswith(_MODULE_RULES["transformer_modules"]):
        return Role.TRANSFORMER
    if path in _MODULE_RULES["not_estimators"] or not name[:1].isupper():
        return None
    if module == "sklearn.model_selection":
        return _selection_role(name)
    if path in _MODULE_RULES["meta_models"] or module in _MODULE_RULES["meta_modules"]:
        return Role.META_MODEL
    return Role.MODEL if module in _MODULE_RULES["model_modules"] else None


def _selection_role(name: str) -> Role | None:
    if name.endswith("SearchCV"):
        return Role.META_MODEL
    splits = name.endswith(("Fold", "Split", "Out"))
    return Role.SPLITTER if splits else None


def _network_role(path: str) -> Role | None:
    package, _, rest = path.partition(".")
    name = rest.rpartition(".")[2]
    if path.startswith("torch.nn.") and name.endswith("Loss"):
        return Role.LOSS_FUNCTION
    if path.startswith(("keras.losses.", "keras.metrics.")):
        return Role.LOSS_FUNCTION if name[:1].isupper() else Role.LOSS
    if package == "transformers" and name in ("from_pretrained", "from_config"):
        return (
            None
            if rest.partition(".")[0].endswith(_MODULE_RULES["not_network_endings"])
            else Role.NETWORK
        )
    zoo = path.startswith(("torchvision.models.", "keras.applications."))
    return Role.NETWORK if zoo and not name.endswith(("_Weights", "preprocess_input")) else None


def _fastai_role(path: str) -> Role | None:
    return Role.LEARNER if path.lower().endswith("learner") else None


_RULES: dict[str, Callable[[str], Role | None]] = {
    "pandas": _tables_role,
    "polars": _tables_role,
    "sklearn": _sklearn_role,
    "torch": _network_role,
    "torchvision": _network_role,
    "transformers": _network_role,
    "keras": _network_role,
    "fastai": _fastai_role,
}


METHODS = {name: frozenset(words.split()) for name, words in _TABLE["methods"].items()}
ATTRIBUTES = {name: frozenset(words.split()) for name, words in _TABLE["attributes"].items()}
ESTIMATOR_METHODS = METHODS["fit"] | METHODS["predict"] | METHODS["score"]
# A program that assigns one of these to a model makes the model its own, so it stops counting.
REPLACEABLE_MEMBERS = ESTIMATOR_METHODS.union(
    *(METHODS[name] for name in ("record", "trainer")),
    *(ATTRIBUTES[name] for name in ("heldout", "training", "study", "record")),
)
READERS = frozenset(_TABLE["imports"]["readers"].split())
BIND_BY_TEXT = frozenset(_TABLE["imports"]["bind_by_text"].split())
USUAL_MEANINGS = _TABLE["usual_meanings"] | {
    name: f"{module}.{name}"
    for module, names in _TABLE["usual_imports"].items()
    for name in names.split()
}
