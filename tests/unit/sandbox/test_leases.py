from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_server.errors import InfrastructureError
from reward_server.model import ErrorKind
from reward_server.sandbox.leases import SlotLease, SlotLeases

CORES = 4
BUDGET = 10


@dataclass(frozen=True)
class Guest:
    cores: int
    memory: int
    turns: int
    leaves_after: int | None


guests = st.lists(
    st.builds(
        Guest,
        cores=st.integers(1, CORES),
        memory=st.integers(0, BUDGET),
        turns=st.integers(0, 5),
        leaves_after=st.none() | st.integers(0, 8),
    ),
    max_size=12,
)


async def wait_turns(turns: int) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)


class Watcher:
    """Holds the leases of all guests at once and checks them against each other."""

    def __init__(self, leases: SlotLeases) -> None:
        self.leases = leases
        self.held: list[SlotLease] = []
        self.order: list[int] = []
        self.visits: list[asyncio.Task[None]] = []

    async def visit(self, number: int, guest: Guest) -> None:
        async with self.leases.hold(guest.cores, guest.memory) as lease:
            self.order.append(number)
            self.held.append(lease)
            try:
                self.check(guest, lease)
                await asyncio.sleep(0)  # one that was let in before may only now awake
                self.check_order(number)
                await wait_turns(guest.turns)
            finally:
                self.held.remove(lease)

    def check(self, guest: Guest, lease: SlotLease) -> None:
        assert len(lease.cores) == guest.cores
        cores = [core for one in self.held for core in one.cores]
        assert len(cores) == len(set(cores)), "a core was lent twice"
        assert sum(one.memory_bytes for one in self.held) <= BUDGET

    def check_order(self, number: int) -> None:
        for earlier, visit in enumerate(self.visits[:number]):
            assert earlier in self.order or visit.done() or visit.cancelling(), "overtaken"

    async def invite(self, everyone: list[Guest]) -> None:
        for number, guest in enumerate(everyone):
            visit = asyncio.create_task(self.visit(number, guest))
            self.visits.append(visit)
            if guest.leaves_after is not None:
                asyncio.get_running_loop().create_task(self.send_away(visit, guest.leaves_after))
            await asyncio.sleep(0)
        async with asyncio.timeout(30):
            ends = await asyncio.gather(*self.visits, return_exceptions=True)
        assert all(end is None or isinstance(end, asyncio.CancelledError) for end in ends), ends

    @staticmethod
    async def send_away(visit: asyncio.Task[None], turns: int) -> None:
        await wait_turns(turns)
        visit.cancel()


@given(guests)
def test_cores_and_memory_are_lent_once_and_in_order(everyone: list[Guest]) -> None:
    async def run() -> None:
        watcher = Watcher(SlotLeases([(core,) for core in range(CORES)], BUDGET))
        await watcher.invite(everyone)
        staying = [n for n, guest in enumerate(everyone) if guest.leaves_after is None]
        assert set(staying) <= set(watcher.order)
        async with asyncio.timeout(30), watcher.leases.hold(CORES, BUDGET) as everything:
            assert everything.cores == tuple(range(CORES))

    asyncio.run(run())


async def test_a_narrow_one_does_not_overtake_a_wide_one() -> None:
    leases = SlotLeases([(0,), (1,)], BUDGET)
    watcher = Watcher(leases)
    async with leases.hold(1, 1):
        wide = asyncio.create_task(watcher.visit(0, Guest(2, 1, 0, None)))
        narrow = asyncio.create_task(watcher.visit(1, Guest(1, 1, 0, None)))
        await wait_turns(10)
        assert watcher.order == []
    await asyncio.gather(wide, narrow)
    assert watcher.order == [0, 1]


async def test_who_gives_up_waiting_no_longer_holds_up_the_line() -> None:
    leases = SlotLeases([(0,), (1,)], BUDGET)
    watcher = Watcher(leases)
    async with leases.hold(1, 1):
        wide = asyncio.create_task(watcher.visit(0, Guest(2, 1, 0, None)))
        narrow = asyncio.create_task(watcher.visit(1, Guest(1, 1, 0, None)))
        await wait_turns(3)
        wide.cancel()
        await narrow
    assert watcher.order == [1]


async def test_who_has_no_patience_left_leaves_the_line_but_never_a_place_that_is_free() -> None:
    leases = SlotLeases([(0,)], BUDGET)
    async with leases.hold(1, 1, 0.0):
        with pytest.raises(TimeoutError):
            async with leases.hold(1, 1, 0.01):
                pass
        waiting = asyncio.create_task(Watcher(leases).visit(0, Guest(1, 1, 0, None)))
        await wait_turns(3)
    await waiting


@pytest.mark.parametrize(("cores", "memory"), [(3, 1), (1, BUDGET + 1)])
async def test_what_will_never_be_there_is_refused_at_once(cores: int, memory: int) -> None:
    leases = SlotLeases([(0,), (1,)], BUDGET)
    with pytest.raises(InfrastructureError) as caught:
        async with leases.hold(cores, memory):
            pass
    assert caught.value.kind is ErrorKind.SANDBOX_UNAVAILABLE


async def test_places_that_share_a_core_count_it_once() -> None:
    leases = SlotLeases([(0,), (0,), (1,)], BUDGET)
    async with leases.hold(2, 1) as lease:
        assert lease == SlotLease((0, 2), (0, 1), 1)
