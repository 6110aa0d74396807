"""Boxes made by a container engine: one fresh container per program, a warden inside."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reward_server.errors import InfrastructureError, SetupError, boundary
from reward_server.model import (
    AdHocProgram,
    Box,
    ErrorKind,
    Execution,
    Instrumentation,
    Instrumented,
    Limits,
    Program,
)
from reward_server.sandbox.bubblewrap.command import ENVIRONMENT, INSIDE
from reward_server.sandbox.cores import share, share_cores
from reward_server.sandbox.docker.container_config import (
    ContainerPlan,
    EngineFeatures,
    SlotFolders,
    build_config,
    program_environment,
)
from reward_server.sandbox.docker.engine import ContainerEngine, EngineError, explain
from reward_server.sandbox.docker.pool import DockerSlot
from reward_server.sandbox.leases import SlotLeases
from reward_server.sandbox.output import Output, kept_bytes
from reward_server.sandbox.payload import RunInstructions, pack
from reward_server.sandbox.pressure import PressureMonitor, lost_share
from reward_server.sandbox.reporting import LeftBehind, RunReport, build_execution
from reward_server.sandbox.seccomp import build_filter
from reward_server.sandbox.stall import ActivitySample, StallDetector

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from reward_server.sandbox.base import Capacity
    from reward_server.sandbox.docker.container import Container

log = logging.getLogger(__name__)

_BOOT_SECONDS = 30.0
_GRACE_SECONDS = 15.0
_STALE_SECONDS = 120.0
_EVIDENCE_SECONDS = 2.0
_KILLED = 137


class DockerSandbox:
    """Runs programs in containers, one slot per core, the rest waiting in order."""

    def __init__(  # noqa: PLR0913 - one argument a setting
        self,
        image: str,
        capacity: Capacity,
        first_uid: int,
        *,
        engine: str | None = None,
        runtime: str | None = None,
        gpus: tuple[str, ...] = (),
        is_warm: bool = True,
        to_host: Callable[[Path], Path] = Path.absolute,
    ) -> None:
        self.box = Box("docker", image)
        self._image = image
        cores = sorted(os.sched_getaffinity(0))
        self._shares = [share_cores(cores, i, capacity.slots) for i in range(capacity.slots)]
        self._leases = SlotLeases(self._shares, capacity.memory_bytes)
        self._contended_above = capacity.contended_above
        self._first_uid = first_uid
        self._runtime = runtime
        self._gpus = gpus
        self._is_warm = is_warm
        self._to_host = to_host
        self._engine = ContainerEngine(engine, 2 * capacity.slots + 2)
        self._slots: list[DockerSlot] = []
        self._running: set[Container] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._cleaner: asyncio.Task[None] | None = None
        self._is_closed = False

    async def start(self) -> None:
        """Find the engine and the image, clean up after the dead, and try one empty box.

        Raises:
            SetupError: when this machine cannot isolate programs; the text names the remedy.
        """
        self._seccomp = build_filter()
        try:
            await self._engine.look_at_runtime(self._runtime)
            await self._engine.remove_stale(_STALE_SECONDS)
            image = await self._engine.find_image(self._image)
            layers = await self._engine.place_inside(image)
            await self._engine.remove_others(layers)
        except EngineError as error:
            raise SetupError(explain(error, self._image)) from error
        self._kit = EngineFeatures(image, secrets.token_hex(8), layers, self._runtime)
        self.box = Box("docker", f"{self._image}@{image[:23]}")
        for index in range(len(self._shares)):
            place = SlotFolders(
                self._first_uid + index, share(self._gpus, index, len(self._shares))
            )
            slot = DockerSlot(self._engine, place, self._build, is_warm=self._is_warm)
            self._slots.append(slot)
        await self._prove()
        self._cleaner = self._spawn(self._remove_stale_forever())

    def _build(self, place: SlotFolders, plan: ContainerPlan) -> dict[str, Any]:
        return build_config(self._kit, place, plan)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _prove(self) -> None:
        """Run an empty program, so that an engine that cannot isolate is found out now."""
        nothing = Instrumented(Program("pass"), (), Instrumentation("off"))
        limits = Limits(30.0, 1 << 28, 1 << 20, 16, 64, 1 << 16, 1 << 16)
        try:
            order = RunInstructions(nothing, limits, "probe")
            execution = await self._run(self._slots[0], order, self._plan(order, self._shares[0]))
        except InfrastructureError as error:
            message = f"no container can be started here ({error.message}; see the log)"
            raise SetupError(message) from error
        if execution.exit_code != 0:
            message = f"an empty program failed in its container: {execution.stderr_tail}"
            raise SetupError(message)

    async def _remove_stale_forever(self) -> None:
        while True:
            await asyncio.sleep(_STALE_SECONDS)
            try:
                await self._engine.remove_stale(_STALE_SECONDS)
            except EngineError as error:
                log.warning("stale containers could not be looked for: %s", error)

    async def execute(
        self, instrumented: Instrumented, task_id: str, public: Path, limits: Limits
    ) -> Execution:
        """Run the program once in a fresh container and tell what happened.

        Raises:
            InfrastructureError: `sandbox_unavailable` when no container could be started,
                `sandbox_lost` when one was lost through no act of the program.
        """
        if instrumented.failure is not None:
            return Execution(self.box, instrumented.failure)
        return await self._carry_out(RunInstructions(instrumented, limits, task_id, public))

    async def run(self, errand: AdHocProgram, limits: Limits, patience_seconds: float) -> Execution:
        """Run a bare program once in a fresh container that has no task's data.

        Raises:
            TimeoutError: when it got no place within its patience; nothing has run then.
            InfrastructureError: as `execute`.
        """
        return await self._carry_out(RunInstructions.of(errand, limits), patience_seconds)

    async def _carry_out(
        self, order: RunInstructions, patience_seconds: float | None = None
    ) -> Execution:
        self._refuse_if_closed()
        asked, limits = time.monotonic(), order.limits
        lease = self._leases.hold(limits.cores, limits.memory_bytes, patience_seconds)
        async with lease as lent:
            queue_seconds = time.monotonic() - asked
            slot = self._slots[lent.places[0]]
            with boundary(ErrorKind.SANDBOX_LOST, "execute"):
                plan = self._plan(order, lent.cores)
                execution = await self._run(slot, order, plan)
            if not self._is_closed and not self._leases.is_wanted:  # they know what to make
                slot.prepare(plan)
        return replace(execution, queue_seconds=queue_seconds)

    def _plan(self, order: RunInstructions, cores: tuple[int, ...]) -> ContainerPlan:
        if order.public is None:
            return ContainerPlan.of(order.task_id, None, (0, 0), cores, order.limits)
        try:
            status = order.public.stat()
        except OSError as error:
            message = "the task's public data is not there"
            raise InfrastructureError(ErrorKind.SANDBOX_UNAVAILABLE, message) from error
        identity = status.st_dev, status.st_ino
        public = str(self._to_host(order.public))
        return ContainerPlan.of(order.task_id, public, identity, cores, order.limits)

    async def _run(
        self, slot: DockerSlot, order: RunInstructions, plan: ContainerPlan
    ) -> Execution:
        begun, limits = time.monotonic(), order.limits
        box = await self._open(slot, plan)
        self._running.add(box)
        barometer = PressureMonitor(None, plan.cores)
        calm = barometer.read()
        try:
            kept = kept_bytes(order.errand, limits.output_bytes)
            output = Output(order.instrumented, limits.output_bytes, kept_bytes=kept)
            request = self._request(plan.cores, order, output)
            watch = StallDetector(
                limits.stall_seconds,
                lambda: ActivitySample(output.total_bytes, box.cpu_seconds),
                box.interrupt,
            )
            async with watch:
                told, started = await self._converse(box, request, output, limits)
            pressure = lost_share(calm, barometer.read(), told.cpu_seconds, was_full=False)
        finally:
            self._running.discard(box)
            await asyncio.shield(self._spawn(_remove(box)))
        stalled_seconds = limits.stall_seconds if watch.stalled and told.killed else None
        left = LeftBehind(bytes(box.artifact), box.fetched(), order.fetch)
        execution = build_execution(self.box, told, output, left, stalled_seconds)
        return replace(
            execution,
            boot_seconds=(started or begun) - begun,
            pressure=pressure,
            contended=pressure is not None and pressure > self._contended_above,
        )

    async def _open(self, slot: DockerSlot, plan: ContainerPlan) -> Container:
        self._refuse_if_closed()
        try:
            return await self._take(slot, plan)
        except EngineError as error:
            log.error("a container did not start: %s", error)  # noqa: TRY400 - no news in a trace
            message = "the box could not be started"
            raise InfrastructureError(ErrorKind.SANDBOX_UNAVAILABLE, message) from error

    async def _take(self, slot: DockerSlot, plan: ContainerPlan) -> Container:
        """Take a container; what it is laid over is put back if somebody has tidied it away."""
        try:
            return await slot.take(plan)
        except EngineError as error:
            log.warning("a container did not start and is tried again: %s", error)
            await self._engine.place_inside(self._kit.image)
            return await slot.take(plan)

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            message = "the sandbox has been closed"
            raise InfrastructureError(ErrorKind.SANDBOX_UNAVAILABLE, message)

    def _request(
        self, cores: tuple[int, ...], order: RunInstructions, output: Output
    ) -> dict[str, Any]:
        limits = order.limits
        return {
            "argv": [f"{ENVIRONMENT}/bin/python", f"{INSIDE}/launcher.py"],
            "environment": program_environment(len(cores)),
            "seccomp": self._seccomp,
            "payload": pack(order, output.tokens, counted=True),
            "boot_seconds": _BOOT_SECONDS,
            "wall_seconds": limits.wall_seconds,
            "beat_seconds": limits.stall_seconds and min(1.0, limits.stall_seconds / 10),
            **order.wanted,
        }

    async def _converse(
        self, box: Container, request: dict[str, Any], output: Output, limits: Limits
    ) -> tuple[RunReport, float | None]:
        """Have the box run its program; where it falls silent, find out why."""
        run = asyncio.create_task(box.run(request, output.out, output.err))
        told, started, is_overdue = None, None, False
        try:
            started = await _wait_for_start(box, run)
            async with asyncio.timeout(limits.wall_seconds + _GRACE_SECONDS) as deadline:
                output.on_excess = lambda: _hurry(box, deadline)
                if started is not None:
                    told = await asyncio.shield(run)
        except TimeoutError:
            is_overdue = True
        finally:
            run.cancel()
            await asyncio.wait([run])
        if told is None:
            told = await self._find_out(box, output, started, is_overdue=is_overdue)
        if not told.launched:
            log.error("a program was not started: %s", output.err.text())
            message = "the box could not be started"
            raise InfrastructureError(ErrorKind.SANDBOX_UNAVAILABLE, message)
        return told, started

    async def _find_out(
        self, box: Container, output: Output, started: float | None, *, is_overdue: bool
    ) -> RunReport:
        """Tell from the engine's account how a box ended that made no report.

        Raises:
            InfrastructureError: when the program is not to blame by that account.
        """
        state = await self._final_state(box, is_overdue=is_overdue)
        ended_by_us = bool(state.get("Running")) and (is_overdue or output.exceeded)
        if started is None or not (state.get("OOMKilled") or ended_by_us):
            log.error("a container was lost (%s): %s", state or "gone", box.complaint)
            kind = ErrorKind.SANDBOX_UNAVAILABLE if started is None else ErrorKind.SANDBOX_LOST
            message = "the sandbox was lost while the program ran"
            raise InfrastructureError(kind, message)
        return RunReport(
            launched=True,
            start_ns=int(started * 1e9),
            end_ns=time.monotonic_ns(),
            status=_KILLED,
            timed_out=is_overdue,
            killed=True,
            cpu_seconds=0.0,
            peak_memory_bytes=0,
            disk_full=False,
            artifact="absent",
            oom_kills=int(bool(state.get("OOMKilled"))),
            processes_refused=0,
        )

    async def _final_state(self, box: Container, *, is_overdue: bool) -> dict[str, Any]:
        """Return the last state of a container; the engine learns of an OOM kill a little late."""
        state: dict[str, Any] = {}
        with contextlib.suppress(EngineError, TimeoutError):
            async with asyncio.timeout(_EVIDENCE_SECONDS):
                while not state.get("OOMKilled"):
                    state = await self._engine.look(box.container)
                    if is_overdue:
                        break
                    await asyncio.sleep(0.1)
        return state

    async def aclose(self) -> None:
        """Kill every box and stop."""
        self._is_closed = True
        for box in list(self._running):
            await _remove(box)
        for slot in self._slots:
            await slot.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_SECONDS):
                await self._leases.returned()  # then nobody has anything left to ask
        if self._cleaner is not None:
            self._cleaner.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self._engine.close)


async def _wait_for_start(box: Container, run: asyncio.Task[RunReport | None]) -> float | None:
    """Return when the program started, or nothing if the run is over without that."""
    started = asyncio.create_task(box.started.wait())
    try:
        async with asyncio.timeout(_BOOT_SECONDS + _GRACE_SECONDS):
            await asyncio.wait([started, run], return_when=asyncio.FIRST_COMPLETED)
    finally:
        started.cancel()
    return time.monotonic() if box.started.is_set() else None


def _hurry(box: Container, deadline: asyncio.Timeout) -> None:
    """End a run that has printed too much, and give it little time to tell about it."""
    box.interrupt()
    deadline.reschedule(asyncio.get_running_loop().time() + _GRACE_SECONDS)


async def _remove(box: Container) -> None:
    """Take a container away; an engine that cannot is found out by the next program."""
    try:
        await box.remove()
    except EngineError as error:
        log.warning("a container could not be removed: %s", error)
