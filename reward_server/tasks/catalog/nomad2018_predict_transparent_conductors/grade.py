"""Mean RMSLE of the two predicted energies; rows count in file order, ids are not read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reward_server.tasks.sdk.checks import align_numbers
from reward_server.tasks.sdk.metrics import mean_columnwise_rmsle

if TYPE_CHECKING:
    import pandas as pd

    from reward_server.tasks.sdk.checks import Floats


def align(submission: pd.DataFrame, answers: pd.DataFrame) -> tuple[Floats, Floats]:
    """Pair predicted and true energies row by row."""
    return align_numbers(submission, answers, ("formation_energy_ev_natom", "bandgap_energy_ev"))


def score(truth: Floats, prediction: Floats) -> float:
    """Return the mean of both columns' RMSLE."""
    return mean_columnwise_rmsle(truth, prediction)
