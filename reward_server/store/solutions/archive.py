"""The services that work on the whole store: statistics, lineages, exports, pruning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from reward_server.store.solutions.lineage import Lineage
from reward_server.store.solutions.pruning import Pruning
from reward_server.store.solutions.statistics import Statistics
from reward_server.store.solutions.transfer import Transfer

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine


@dataclass(frozen=True, slots=True)
class Archive:
    """Statistics, lineages, exports and pruning over one pool of connections."""

    statistics: Statistics
    lineage: Lineage
    transfer: Transfer
    pruning: Pruning

    @classmethod
    def over(cls, engine: AsyncEngine) -> Self:
        """Return the archive of a database."""
        return cls(Statistics(engine), Lineage(engine), Transfer(engine), Pruning(engine))
