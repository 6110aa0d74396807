"""Which ad hoc programs may start, with a worker that only counts them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reward_server.errors import InfrastructureError, QueueFullError
from reward_server.jobs.metrics import Metrics
from reward_server.jobs.run_code import AdHocRequest, NoResultError, RunCodeLimits, RunCodeService
from reward_server.model import AdHocProgram, Box, ErrorKind, Execution, Limits

CEILING = Limits(60.0, 1 << 30, 1 << 30, 16, 64, 1 << 16, 1 << 16)
DONE = Execution(Box("none", ""), None)
LONG = AdHocRequest(1.0, None, 60.0)


@dataclass
class CountingWorker:
    """Starts what it is given and records how many programs ran at once."""

    slots: int
    turns: int = 1
    busy: int = 0
    is_draining: bool = False
    running: int = 0
    most: int = 0
    limits: list[Limits] = field(default_factory=list)
    faults: list[Exception] = field(default_factory=list)
    order: list[str] = field(default_factory=list)

    @property
    def config(self) -> SimpleNamespace:
        return SimpleNamespace(slots=self.slots, max_attempts=3)

    async def run_program(self, program: AdHocProgram, limits: Limits, _: float) -> Execution:
        self.running += 1
        self.most = max(self.most, self.running)
        self.limits.append(limits)
        self.order.append(program.code)
        try:
            for _ in range(self.turns):
                await asyncio.sleep(0)
            if self.faults:
                raise self.faults.pop(0)
            return DONE
        finally:
            self.running -= 1


def make(worker: CountingWorker, queued: int = 0, **limits: Any) -> RunCodeService:  # noqa: ANN401
    given = {"memory_bytes": 1 << 28, "waiting": 1000, "waiting_bytes": 1 << 20, **limits}
    admission: Any = SimpleNamespace(queued=queued)
    fake: Any = worker
    return RunCodeService(RunCodeLimits(CEILING, **given), fake, admission, Metrics())


async def test_programs_start_in_order_of_arrival() -> None:
    worker = CountingWorker(1)
    service = make(worker)
    await asyncio.gather(*(service.run(AdHocProgram(str(n)), LONG) for n in range(20)))
    assert worker.order == [str(n) for n in range(20)]
    assert worker.most == 1


@pytest.mark.parametrize(("slots", "alone", "beside_jobs"), [(1, 1, 1), (2, 2, 1), (5, 5, 2)])
async def test_programs_leave_half_of_the_slots_to_waiting_jobs(
    slots: int, alone: int, beside_jobs: int
) -> None:
    for queued, expected in ((0, alone), (7, beside_jobs)):
        worker = CountingWorker(slots)
        service = make(worker, queued)
        await asyncio.gather(*(service.run(AdHocProgram(""), LONG) for _ in range(20)))
        assert worker.most == expected


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1, 3),
    st.lists(st.tuples(st.integers(0, 4), st.none() | st.integers(0, 12)), max_size=15),
)
def test_no_slot_is_lost_when_callers_leave(
    slots: int, callers: list[tuple[int, int | None]]
) -> None:
    async def leave(call: asyncio.Task[Execution], turns: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        call.cancel()

    async def run() -> None:
        worker = CountingWorker(slots)
        service = make(worker)
        calls, leaving = [], []
        for turns, leaves_after in callers:
            worker.turns = turns
            calls.append(asyncio.create_task(service.run(AdHocProgram("x"), LONG)))
            if leaves_after is not None:
                leaving.append(asyncio.create_task(leave(calls[-1], leaves_after)))
        async with asyncio.timeout(60):
            await asyncio.gather(*calls, *leaving, return_exceptions=True)
        assert worker.most <= slots
        assert (service._started, service._bytes, len(service._line)) == (0, 0, 0)
        await asyncio.gather(*(service.run(AdHocProgram(""), LONG) for _ in range(slots)))

    asyncio.run(run())


async def test_a_timeout_frees_the_line_and_draining_empties_it() -> None:
    worker = CountingWorker(1, turns=10**9)
    service = make(worker)
    first = asyncio.create_task(service.run(AdHocProgram("1"), LONG))
    await asyncio.sleep(0)
    with pytest.raises(NoResultError) as late:
        await service.run(AdHocProgram("2"), AdHocRequest(1.0, None, 0.01))
    assert late.value.kind is ErrorKind.OVERLOADED
    waiting = asyncio.create_task(service.run(AdHocProgram("3"), LONG))
    await asyncio.sleep(0)
    worker.is_draining = True
    with pytest.raises(InfrastructureError):
        await waiting
    with pytest.raises(InfrastructureError):
        await service.run(AdHocProgram("4"), LONG)
    first.cancel()
    await asyncio.wait([first])
    assert worker.order == ["1"]
    assert (service._started, service._bytes) == (0, 0)


async def test_waiting_programs_are_bounded_in_number_and_in_bytes() -> None:
    worker = CountingWorker(1, turns=10**9)
    service = make(worker, waiting=2, waiting_bytes=100)
    sent = [asyncio.create_task(service.run(AdHocProgram("x" * 10), LONG)) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(QueueFullError):
        await service.run(AdHocProgram("x" * 90), LONG)
    sent.append(asyncio.create_task(service.run(AdHocProgram("y"), LONG)))
    await asyncio.sleep(0)
    with pytest.raises(QueueFullError):
        await service.run(AdHocProgram("z"), LONG)
    for one in sent:
        one.cancel()
    await asyncio.wait(sent)


async def test_a_program_is_retried_as_often_as_a_job() -> None:
    lost = InfrastructureError(ErrorKind.SANDBOX_LOST, "lost")
    worker = CountingWorker(1, faults=[lost, lost])
    assert await make(worker).run(AdHocProgram(""), LONG) == DONE
    worker = CountingWorker(1, faults=[lost] * 9)
    with pytest.raises(NoResultError) as caught:
        await make(worker).run(AdHocProgram(""), LONG)
    assert caught.value.kind is ErrorKind.SANDBOX_LOST
    assert len(worker.faults) == 6
    worker = CountingWorker(1, faults=[lost])
    with pytest.raises(NoResultError):  # too late to try again
        await make(worker).run(AdHocProgram(""), AdHocRequest(1.0, None, 0.1))


@pytest.mark.parametrize(
    ("requested", "granted"),
    [(None, 1 << 28), (1, 64 << 20), (1 << 29, 1 << 29), (1 << 40, 1 << 30)],
)
async def test_memory_has_a_floor_a_default_and_a_ceiling(
    requested: int | None, granted: int
) -> None:
    worker = CountingWorker(1)
    await make(worker).run(AdHocProgram(""), AdHocRequest(3.0, requested, 1.0))
    assert (worker.limits[0].memory_bytes, worker.limits[0].wall_seconds) == (granted, 3.0)
