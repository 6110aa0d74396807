"""The checks that a task's `align` makes before it pairs a submission with the answers.

The checks refuse what MLE-bench's graders refuse and nothing else. After `align`, a metric
sees finite numbers of the right shape and cannot fail because of a submission.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from reward_server.tasks.sdk.submission_table import require as require  # noqa: PLC0414 -- authors import it from here

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd

Floats: TypeAlias = NDArray[np.float64]


def require_columns(submission: pd.DataFrame, columns: Iterable[str]) -> None:
    """Refuse a submission that lacks one of the columns; others are allowed."""
    require(set(columns) <= set(submission.columns), "a column is missing")


def require_rows(submission: pd.DataFrame, answers: pd.DataFrame) -> None:
    """Refuse a submission with more or fewer rows than the answers."""
    require(len(submission) == len(answers), "the number of rows differs from the test set")


def require_numeric(table: pd.DataFrame) -> None:
    """Refuse columns that were not read as numbers or as True and False."""
    require(all(map(is_numeric_dtype, table.dtypes)), "a value is not a number")


def require_one_dtype_family(table: pd.DataFrame) -> None:
    """Refuse True and False in some columns beside numbers in others."""
    require(len({is_bool_dtype(dtype) for dtype in table.dtypes}) == 1, "columns differ in type")


def require_whole(values: NDArray[Any]) -> None:
    """Refuse numbers with a fraction; 3.0 is whole."""
    if values.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            require((values == values.astype(np.int64)).all(), "a value is not a whole number")


def require_finite(values: Floats) -> None:
    """Refuse missing and infinite values."""
    require(np.isfinite(values).all(), "a value is missing or infinite")


def require_probabilities(values: Floats) -> None:
    """Refuse missing values and those outside of 0 to 1."""
    require(((values >= 0) & (values <= 1)).all(), "a value is not a probability")


def require_distributions(probabilities: pd.DataFrame) -> None:
    """Refuse rows that are not probabilities with a sum of one."""
    require_numeric(probabilities)
    require_one_dtype_family(probabilities)
    close = np.isclose(probabilities.sum(axis=1).to_numpy(np.float64), 1, rtol=1e-5, atol=1e-6)
    require(close.all(), "a row does not sum to one")
    require_probabilities(probabilities.to_numpy(np.float64))


def sort_alike(
    submission: pd.DataFrame, answers: pd.DataFrame, id_column: str
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Sort both tables by id; the ids must then be equal, row by row."""
    ours, theirs = answers.sort_values(id_column), submission.sort_values(id_column)
    same = theirs[id_column].to_numpy(object) == ours[id_column].to_numpy(object)
    require(np.all(same), "the ids differ from the test set")
    return theirs, ours


def align_binary(
    submission: pd.DataFrame, answers: pd.DataFrame, *, id_column: str, target: str
) -> tuple[Floats, Floats]:
    """Pair the probabilities of one class with its labels, by id."""
    require_columns(submission, (id_column, target))
    require_rows(submission, answers)
    require_numeric(submission[[target]])
    require_probabilities(submission[target].to_numpy(np.float64))
    theirs, ours = sort_alike(submission, answers, id_column)
    return ours[target].to_numpy(np.float64), theirs[target].to_numpy(np.float64)


def align_one_hot(
    submission: pd.DataFrame, answers: pd.DataFrame, *, id_column: str, classes: Sequence[str]
) -> tuple[Floats, Floats]:
    """Pair rows of class probabilities that sum to one with one-hot labels, by id.

    The id must be the first column; the classes follow in any order.
    """
    require(sorted(submission.columns[1:]) == sorted(classes), "the columns differ")
    require(submission.columns[0] == id_column, "the first column is not the id")
    require_rows(submission, answers)
    require_distributions(submission.iloc[:, 1:])
    theirs, ours = sort_alike(submission, answers, id_column)
    columns = list(classes)
    return ours[columns].to_numpy(np.float64), theirs[columns].to_numpy(np.float64)


def align_numbers(
    submission: pd.DataFrame, answers: pd.DataFrame, columns: Sequence[str]
) -> tuple[Floats, Floats]:
    """Pair finite, non-negative numbers with the true ones in file order, whatever the ids."""
    require_columns(submission, columns)
    require_rows(submission, answers)
    pairs = [submission[column].to_numpy(object).astype(np.float64) for column in columns]
    prediction = np.column_stack(pairs)
    require_finite(prediction)
    require((prediction >= 0).all(), "a value is negative")
    return answers[list(columns)].to_numpy(np.float64), prediction
