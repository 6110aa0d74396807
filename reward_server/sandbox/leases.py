"""Leases of slots and memory, granted together and strictly first in, first out.

A slot is a set of cores with what a sandbox keeps for one program. A program that needs more cores
leases several slots. Its memory counts against one budget for all, and it gets both at once or
waits. Nobody overtakes: small programs never starve a large one, at the price of cores that idle
while it waits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from reward_server.errors import InfrastructureError
from reward_server.model import ErrorKind

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

T = TypeVar("T")


def share(things: Sequence[T], index: int, slots: int) -> tuple[T, ...]:
    """Return the share of one slot, as even as possible; the first slots get what is left over."""
    return tuple(things[index::slots])


def share_cores(cores: Sequence[int], index: int, slots: int) -> tuple[int, ...]:
    """Return the cores of one slot; a slot beyond the last core shares one."""
    return share(cores, index, slots) or (cores[index % len(cores)],)


@dataclass(frozen=True, slots=True)
class SlotLease:
    """The slots of a program, the first of which it runs in, and all their cores."""

    slots: tuple[int, ...]
    cores: tuple[int, ...]
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class _LeaseRequest:
    cores: int
    memory_bytes: int
    granted: asyncio.Future[SlotLease]


class SlotLeases:
    """Leases slots, given by the cores of each, and memory out of one budget."""

    def __init__(self, slot_cores: Sequence[tuple[int, ...]], memory_bytes: int) -> None:
        self._slot_cores = tuple(slot_cores)
        self._free = list(range(len(slot_cores)))
        self.memory_bytes = memory_bytes
        self._left_bytes = memory_bytes
        self._waiting: deque[_LeaseRequest] = deque()

    @asynccontextmanager
    async def acquire(
        self, cores: int, memory_bytes: int, queue_timeout_seconds: float | None = None
    ) -> AsyncIterator[SlotLease]:
        """Wait in line for that many cores and that much memory, and lease them for the block.

        Raises:
            InfrastructureError: `sandbox_unavailable` when the server never has as much.
            TimeoutError: when the lease was not granted in time.
        """
        self._refuse_impossible(cores, memory_bytes)
        async with asyncio.timeout(queue_timeout_seconds):
            lease = await self._wait(cores, memory_bytes)
        try:
            yield lease
        finally:
            self._release(lease)

    @property
    def has_waiting(self) -> bool:
        """Tell whether somebody waits for a lease."""
        return any(not request.granted.cancelled() for request in self._waiting)

    async def wait_until_released(self) -> None:
        """Wait until every lease has ended."""
        while len(self._free) < len(self._slot_cores):  # noqa: ASYNC110 - only at the end
            await asyncio.sleep(0.01)

    def _refuse_impossible(self, cores: int, memory_bytes: int) -> None:
        everything = {core for cores_of_one in self._slot_cores for core in cores_of_one}
        if cores > len(everything) or memory_bytes > self.memory_bytes:
            message = "the task needs more cores or memory than this server has"
            raise InfrastructureError(ErrorKind.SANDBOX_UNAVAILABLE, message)

    async def _wait(self, cores: int, memory_bytes: int) -> SlotLease:
        request = _LeaseRequest(cores, memory_bytes, asyncio.get_running_loop().create_future())
        self._waiting.append(request)
        self._grant()
        try:
            return await request.granted
        except asyncio.CancelledError:
            if request.granted.cancelled():
                self._grant()  # it may have been the one that held up the line
            else:
                self._release(request.granted.result())
            raise

    def _grant(self) -> None:
        while self._waiting:
            request = self._waiting[0]
            if request.granted.cancelled():
                self._waiting.popleft()
                continue
            lease = self._fit(request)
            if lease is None:
                return
            self._waiting.popleft()
            self._free = [slot for slot in self._free if slot not in lease.slots]
            self._left_bytes -= lease.memory_bytes
            request.granted.set_result(lease)

    def _fit(self, request: _LeaseRequest) -> SlotLease | None:
        if request.memory_bytes > self._left_bytes:
            return None
        slots: list[int] = []
        cores: set[int] = set()
        for slot in self._free:
            # Where slots outnumber cores, slots share some: those add nothing to a wide program.
            if not slots or not cores.issuperset(self._slot_cores[slot]):
                slots.append(slot)
                cores.update(self._slot_cores[slot])
            if len(cores) >= request.cores:
                return SlotLease(tuple(slots), tuple(sorted(cores)), request.memory_bytes)
        return None

    def _release(self, lease: SlotLease) -> None:
        self._free += lease.slots
        self._left_bytes += lease.memory_bytes
        self._grant()
