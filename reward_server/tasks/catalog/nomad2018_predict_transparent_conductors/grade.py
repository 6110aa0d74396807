"""Mean RMSLE of the two predicted energies; rows count in file order, ids are not read."""

from __future__ import annotations

from functools import partial

from reward_server.tasks.sdk.checks import align_numbers
from reward_server.tasks.sdk.metrics import mean_columnwise_rmsle as score

__all__ = ["align", "score"]

align = partial(align_numbers, columns=("formation_energy_ev_natom", "bandgap_energy_ev"))
