"""Who of the bare programs may go, with a worker that only counts them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reward_server.errors import InfrastructureError, OverloadedError
from reward_server.jobs.metrics import Metrics
from reward_server.jobs.run_code import AdHocRequest, NoResultError, RunCodeLimits, RunCodeService
from reward_server.model import AdHocProgram, Box, ErrorKind, Execution, Limits

CEILING = Limits(60.0, 1 << 30, 1 << 30, 16, 64, 1 << 16, 1 << 16)
DONE = Execution(Box("none", ""), None)
LONG = AdHocRequest(1.0, None, 60.0)


@dataclass
class Places:
    """Stands in for a worker: begins what it is given and notes how many there were at once."""

    slots: int
    turns: int = 1
    busy: int = 0
    is_draining: bool = False
    present: int = 0
    most: int = 0
    limits: list[Limits] = field(default_factory=list)
    faults: list[Exception] = field(default_factory=list)
    order: list[str] = field(default_factory=list)

    @property
    def terms(self) -> SimpleNamespace:
        return SimpleNamespace(slots=self.slots, max_attempts=3)

    async def run_errand(self, errand: AdHocProgram, limits: Limits, _: float) -> Execution:
        self.present += 1
        self.most = max(self.most, self.present)
        self.limits.append(limits)
        self.order.append(errand.code)
        try:
            for _ in range(self.turns):
                await asyncio.sleep(0)
            if self.faults:
                raise self.faults.pop(0)
            return DONE
        finally:
            self.present -= 1


def make(places: Places, queued: int = 0, **terms: Any) -> RunCodeService:  # noqa: ANN401
    given = {"memory_bytes": 1 << 28, "waiting": 1000, "waiting_bytes": 1 << 20, **terms}
    admission: Any = SimpleNamespace(queued=queued)
    worker: Any = places
    return RunCodeService(RunCodeLimits(CEILING, **given), worker, admission, Metrics())


async def test_the_first_to_come_is_the_first_to_go() -> None:
    places = Places(1)
    errands = make(places)
    await asyncio.gather(*(errands.run(AdHocProgram(str(n)), LONG) for n in range(20)))
    assert places.order == [str(n) for n in range(20)]
    assert places.most == 1


@pytest.mark.parametrize(("slots", "alone", "beside_jobs"), [(1, 1, 1), (2, 2, 1), (5, 5, 2)])
async def test_jobs_that_wait_leave_half_of_the_places(
    slots: int, alone: int, beside_jobs: int
) -> None:
    for queued, expected in ((0, alone), (7, beside_jobs)):
        places = Places(slots)
        errands = make(places, queued)
        await asyncio.gather(*(errands.run(AdHocProgram(""), LONG) for _ in range(20)))
        assert places.most == expected


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1, 3),
    st.lists(st.tuples(st.integers(0, 4), st.none() | st.integers(0, 12)), max_size=15),
)
def test_whoever_leaves_no_place_is_lost(slots: int, guests: list[tuple[int, int | None]]) -> None:
    async def leave(visit: asyncio.Task[Execution], turns: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        visit.cancel()

    async def run() -> None:
        places = Places(slots)
        errands = make(places)
        visits, leaving = [], []
        for turns, leaves_after in guests:
            places.turns = turns
            visits.append(asyncio.create_task(errands.run(AdHocProgram("x"), LONG)))
            if leaves_after is not None:
                leaving.append(asyncio.create_task(leave(visits[-1], leaves_after)))
        async with asyncio.timeout(60):
            await asyncio.gather(*visits, *leaving, return_exceptions=True)
        assert places.most <= slots
        assert (errands._begun, errands._bytes, len(errands._line)) == (0, 0, 0)
        await asyncio.gather(*(errands.run(AdHocProgram(""), LONG) for _ in range(slots)))

    asyncio.run(run())


async def test_impatience_frees_the_line_and_drain_empties_it() -> None:
    places = Places(1, turns=10**9)
    errands = make(places)
    first = asyncio.create_task(errands.run(AdHocProgram("1"), LONG))
    await asyncio.sleep(0)
    with pytest.raises(NoResultError) as late:
        await errands.run(AdHocProgram("2"), AdHocRequest(1.0, None, 0.01))
    assert late.value.kind is ErrorKind.OVERLOADED
    waiting = asyncio.create_task(errands.run(AdHocProgram("3"), LONG))
    await asyncio.sleep(0)
    places.is_draining = True
    with pytest.raises(InfrastructureError):
        await waiting
    with pytest.raises(InfrastructureError):
        await errands.run(AdHocProgram("4"), LONG)
    first.cancel()
    await asyncio.wait([first])
    assert places.order == ["1"]
    assert (errands._begun, errands._bytes) == (0, 0)


async def test_what_waits_is_bounded_in_number_and_in_bytes() -> None:
    places = Places(1, turns=10**9)
    errands = make(places, waiting=2, waiting_bytes=100)
    sent = [asyncio.create_task(errands.run(AdHocProgram("x" * 10), LONG)) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(OverloadedError):
        await errands.run(AdHocProgram("x" * 90), LONG)
    sent.append(asyncio.create_task(errands.run(AdHocProgram("y"), LONG)))
    await asyncio.sleep(0)
    with pytest.raises(OverloadedError):
        await errands.run(AdHocProgram("z"), LONG)
    for one in sent:
        one.cancel()
    await asyncio.wait(sent)


async def test_a_lost_box_is_replaced_as_often_as_a_job_is_tried() -> None:
    lost = InfrastructureError(ErrorKind.SANDBOX_LOST, "lost")
    places = Places(1, faults=[lost, lost])
    assert await make(places).run(AdHocProgram(""), LONG) == DONE
    places = Places(1, faults=[lost] * 9)
    with pytest.raises(NoResultError) as caught:
        await make(places).run(AdHocProgram(""), LONG)
    assert caught.value.kind is ErrorKind.SANDBOX_LOST
    assert len(places.faults) == 6
    places = Places(1, faults=[lost])
    with pytest.raises(NoResultError):  # too late to try again
        await make(places).run(AdHocProgram(""), AdHocRequest(1.0, None, 0.1))


@pytest.mark.parametrize(
    ("asked", "given"),
    [(None, 1 << 28), (1, 64 << 20), (1 << 29, 1 << 29), (1 << 40, 1 << 30)],
)
async def test_memory_has_a_floor_a_default_and_a_ceiling(asked: int | None, given: int) -> None:
    places = Places(1)
    await make(places).run(AdHocProgram(""), AdHocRequest(3.0, asked, 1.0))
    assert (places.limits[0].memory_bytes, places.limits[0].wall_seconds) == (given, 3.0)
