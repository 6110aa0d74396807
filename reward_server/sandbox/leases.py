"""Who may run now: cores and memory are lent out together, strictly in the order of asking.

A place is what a sandbox keeps for one program: a set of cores and whatever belongs to them. A
program that wants more cores takes several places, its memory counts against one budget for
all, and it gets both at once or waits. Nobody overtakes: one that wants much is never starved
by those that want little, at the price of cores that idle while it waits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reward_server.errors import InfrastructureError
from reward_server.model import ErrorKind

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence


@dataclass(frozen=True, slots=True)
class SlotLease:
    """The places a program has, the first of which it runs in, and all their cores."""

    places: tuple[int, ...]
    cores: tuple[int, ...]
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class _LeaseRequest:
    cores: int
    memory_bytes: int
    granted: asyncio.Future[SlotLease]


class SlotLeases:
    """Lends places, given by the cores of each, and memory out of one budget."""

    def __init__(self, places: Sequence[tuple[int, ...]], memory_bytes: int) -> None:
        self._places = tuple(places)
        self._free = list(range(len(places)))
        self.memory_bytes = memory_bytes
        self._left_bytes = memory_bytes
        self._waiting: deque[_LeaseRequest] = deque()

    @asynccontextmanager
    async def hold(
        self, cores: int, memory_bytes: int, patience_seconds: float | None = None
    ) -> AsyncIterator[SlotLease]:
        """Wait in line for that many cores and that much memory, and lend them for a while.

        Raises:
            InfrastructureError: `sandbox_unavailable` when there will never be as much.
            TimeoutError: when it was not our turn within our patience.
        """
        self._refuse_impossible(cores, memory_bytes)
        async with asyncio.timeout(patience_seconds):
            lease = await self._wait(cores, memory_bytes)
        try:
            yield lease
        finally:
            self._take_back(lease)

    @property
    def is_wanted(self) -> bool:
        """Tell whether somebody waits."""
        return any(not wish.granted.cancelled() for wish in self._waiting)

    async def returned(self) -> None:
        """Wait until everything that was lent is back."""
        while len(self._free) < len(self._places):  # noqa: ASYNC110 - asked once, at the end
            await asyncio.sleep(0.01)

    def _refuse_impossible(self, cores: int, memory_bytes: int) -> None:
        everything = {core for place in self._places for core in place}
        if cores > len(everything) or memory_bytes > self.memory_bytes:
            message = "the task wants more cores or memory than this server has"
            raise InfrastructureError(ErrorKind.SANDBOX_UNAVAILABLE, message)

    async def _wait(self, cores: int, memory_bytes: int) -> SlotLease:
        wish = _LeaseRequest(cores, memory_bytes, asyncio.get_running_loop().create_future())
        self._waiting.append(wish)
        self._serve()
        try:
            return await wish.granted
        except asyncio.CancelledError:
            if wish.granted.cancelled():
                self._serve()  # it may have been the one that held up the line
            else:
                self._take_back(wish.granted.result())
            raise

    def _serve(self) -> None:
        while self._waiting:
            wish = self._waiting[0]
            if wish.granted.cancelled():
                self._waiting.popleft()
                continue
            lease = self._fit(wish)
            if lease is None:
                return
            self._waiting.popleft()
            self._free = [place for place in self._free if place not in lease.places]
            self._left_bytes -= lease.memory_bytes
            wish.granted.set_result(lease)

    def _fit(self, wish: _LeaseRequest) -> SlotLease | None:
        if wish.memory_bytes > self._left_bytes:
            return None
        places: list[int] = []
        cores: set[int] = set()
        for place in self._free:
            if not places or not cores.issuperset(self._places[place]):
                places.append(place)
                cores.update(self._places[place])
            if len(cores) >= wish.cores:
                return SlotLease(tuple(places), tuple(sorted(cores)), wish.memory_bytes)
        return None

    def _take_back(self, lease: SlotLease) -> None:
        self._free += lease.places
        self._left_bytes += lease.memory_bytes
        self._serve()
