"""The kind of model that a program trains, guessed from the names in it.

The guess is cheap and good enough to choose diverse parents. If several kinds match, the first in
the list below counts, because it is the rarer and more specific one. Nothing is parsed: a name in a
comment counts as well.
"""

from __future__ import annotations

import re

OTHER = "other"
_NAMES = {
    "ensemble": r"StackingClassifier|StackingRegressor|VotingClassifier|VotingRegressor",
    "transformer": r"transformers|AutoModel\w*|sentence_transformers",
    "neural_net": r"torch\w*|keras|tensorflow|fastai|timm|MLPClassifier|MLPRegressor",
    "catboost": r"catboost|CatBoost\w+",
    "lightgbm": r"lightgbm|LGBM\w+",
    "xgboost": r"xgboost|XGB\w+",
    "boosting": r"\w*GradientBoosting\w+|AdaBoost\w+",
    "forest": r"RandomForest\w+|ExtraTrees\w+|DecisionTree\w+",
    "svm": r"SVC|SVR|LinearSVC|LinearSVR|NuSV[CR]",
    "neighbours": r"KNeighbors\w+|NearestNeighbors|NearestCentroid",
    "bayes": r"\w+NB|GaussianProcess\w+",
    "linear": (
        r"LogisticRegression\w*|LinearRegression|Ridge\w*|Lasso\w*|ElasticNet\w*|SGD\w+"
        r"|PassiveAggressive\w+|statsmodels|LinearDiscriminantAnalysis"
    ),
}
FAMILIES = (*_NAMES, OTHER)
_ANY = re.compile(rf"\b(?:{'|'.join(f'(?P<{name}>{text})' for name, text in _NAMES.items())})\b")
_RANKS = {name: rank for rank, name in enumerate(_NAMES)}


def family_of(code: str) -> str:
    """Return the family of a program's model, `other` if no known name is in it."""
    found = {match.lastgroup for match in _ANY.finditer(code)} - {None}
    return min(found, key=lambda name: _RANKS[name or ""], default=None) or OTHER
