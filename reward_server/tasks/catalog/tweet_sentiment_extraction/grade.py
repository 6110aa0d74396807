"""Mean word-level Jaccard similarity of the selected texts."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, TypeAlias

from reward_server.tasks.sdk.checks import require, require_columns, require_rows, sort_alike

if TYPE_CHECKING:
    import pandas as pd

Words: TypeAlias = list[set[str]]


def align(submission: pd.DataFrame, answers: pd.DataFrame) -> tuple[Words, Words]:
    """Pair the words of both texts by tweet; two texts without words cannot be compared."""
    require_columns(submission, ("textID", "selected_text"))
    require_rows(submission, answers)
    theirs, ours = sort_alike(submission, answers, "textID")
    truth, prediction = _words(ours["selected_text"]), _words(theirs["selected_text"])
    require(all(map(set.union, truth, prediction)), "a text is empty where the answer is, too")
    return truth, prediction


def score(truth: Words, prediction: Words) -> float:
    """Return the mean share of common words among all words of both texts."""
    return fmean(len(a & b) / len(a | b) for a, b in zip(truth, prediction, strict=True))


def _words(texts: pd.Series) -> Words:
    """Split texts as they were read: a column of numbers alone gives numbers, written anew."""
    values = texts.astype(object).where(texts.notna(), "")
    return [set(str(value).lower().split()) for value in values]
