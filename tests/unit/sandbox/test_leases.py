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
class Customer:
    cores: int
    memory: int
    turns: int
    cancelled_after: int | None


customer_lists = st.lists(
    st.builds(
        Customer,
        cores=st.integers(1, CORES),
        memory=st.integers(0, BUDGET),
        turns=st.integers(0, 5),
        cancelled_after=st.none() | st.integers(0, 8),
    ),
    max_size=12,
)


async def wait_turns(turns: int) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)


class Watcher:
    """Holds the leases of all customers at once and checks them against each other."""

    def __init__(self, leases: SlotLeases) -> None:
        self.leases = leases
        self.held: list[SlotLease] = []
        self.order: list[int] = []
        self.uses: list[asyncio.Task[None]] = []

    async def use(self, number: int, customer: Customer) -> None:
        async with self.leases.acquire(customer.cores, customer.memory) as lease:
            self.order.append(number)
            self.held.append(lease)
            try:
                self.check(customer, lease)
                await asyncio.sleep(0)  # one granted before may only now awake
                self.check_order(number)
                await wait_turns(customer.turns)
            finally:
                self.held.remove(lease)

    def check(self, customer: Customer, lease: SlotLease) -> None:
        assert len(lease.cores) == customer.cores
        cores = [core for one in self.held for core in one.cores]
        assert len(cores) == len(set(cores)), "a core was leased twice"
        assert sum(one.memory_bytes for one in self.held) <= BUDGET

    def check_order(self, number: int) -> None:
        for earlier, use in enumerate(self.uses[:number]):
            assert earlier in self.order or use.done() or use.cancelling(), "overtaken"

    async def serve(self, customers: list[Customer]) -> None:
        for number, customer in enumerate(customers):
            use = asyncio.create_task(self.use(number, customer))
            self.uses.append(use)
            if customer.cancelled_after is not None:
                asyncio.get_running_loop().create_task(
                    self.cancel_later(use, customer.cancelled_after)
                )
            await asyncio.sleep(0)
        async with asyncio.timeout(30):
            ends = await asyncio.gather(*self.uses, return_exceptions=True)
        assert all(end is None or isinstance(end, asyncio.CancelledError) for end in ends), ends

    @staticmethod
    async def cancel_later(use: asyncio.Task[None], turns: int) -> None:
        await wait_turns(turns)
        use.cancel()


@given(customer_lists)
def test_cores_and_memory_are_leased_once_and_in_order(customers: list[Customer]) -> None:
    async def run() -> None:
        watcher = Watcher(SlotLeases([(core,) for core in range(CORES)], BUDGET))
        await watcher.serve(customers)
        staying = [n for n, customer in enumerate(customers) if customer.cancelled_after is None]
        assert set(staying) <= set(watcher.order)
        async with asyncio.timeout(30), watcher.leases.acquire(CORES, BUDGET) as everything:
            assert everything.cores == tuple(range(CORES))

    asyncio.run(run())


async def test_a_narrow_program_does_not_overtake_a_wide_one() -> None:
    leases = SlotLeases([(0,), (1,)], BUDGET)
    watcher = Watcher(leases)
    async with leases.acquire(1, 1):
        wide = asyncio.create_task(watcher.use(0, Customer(2, 1, 0, None)))
        narrow = asyncio.create_task(watcher.use(1, Customer(1, 1, 0, None)))
        await wait_turns(10)
        assert watcher.order == []
    await asyncio.gather(wide, narrow)
    assert watcher.order == [0, 1]


async def test_a_cancelled_request_no_longer_blocks_the_queue() -> None:
    leases = SlotLeases([(0,), (1,)], BUDGET)
    watcher = Watcher(leases)
    async with leases.acquire(1, 1):
        wide = asyncio.create_task(watcher.use(0, Customer(2, 1, 0, None)))
        narrow = asyncio.create_task(watcher.use(1, Customer(1, 1, 0, None)))
        await wait_turns(3)
        wide.cancel()
        await narrow
    assert watcher.order == [1]


async def test_a_timeout_ends_the_wait_but_never_refuses_a_free_slot() -> None:
    leases = SlotLeases([(0,)], BUDGET)
    async with leases.acquire(1, 1, 0.0):
        with pytest.raises(TimeoutError):
            async with leases.acquire(1, 1, 0.01):
                pass
        waiting = asyncio.create_task(Watcher(leases).use(0, Customer(1, 1, 0, None)))
        await wait_turns(3)
    await waiting


@pytest.mark.parametrize(("cores", "memory"), [(3, 1), (1, BUDGET + 1)])
async def test_what_the_machine_lacks_is_refused_at_once(cores: int, memory: int) -> None:
    leases = SlotLeases([(0,), (1,)], BUDGET)
    with pytest.raises(InfrastructureError) as caught:
        async with leases.acquire(cores, memory):
            pass
    assert caught.value.kind is ErrorKind.SANDBOX_UNAVAILABLE


async def test_slots_that_share_a_core_count_it_once() -> None:
    leases = SlotLeases([(0,), (0,), (1,)], BUDGET)
    async with leases.acquire(2, 1) as lease:
        assert lease == SlotLease((0, 2), (0, 1), 1)
