"""How a machine's cores are divided among slots, whichever kind of box they run."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")


def share(things: Sequence[T], index: int, slots: int) -> tuple[T, ...]:
    """Divide things among the slots as evenly as they go; spare ones go to the first."""
    return tuple(things[index::slots])


def share_cores(cores: Sequence[int], index: int, slots: int) -> tuple[int, ...]:
    """Divide the cores; a slot beyond the last core shares one."""
    return share(cores, index, slots) or (cores[index % len(cores)],)
