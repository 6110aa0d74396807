"""Runs each program in a container of its own, started by a trusted init."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reward_server.errors import InfrastructureError, SetupError
from reward_server.model import (
    Box,
    ErrorKind,
    Execution,
    Limits,
)
from reward_server.sandbox import blame
from reward_server.sandbox.docker.container_config import (
    ContainerBase,
    ContainerPlan,
    SlotIdentity,
    build_config,
    program_environment,
)
from reward_server.sandbox.docker.engine import ContainerEngine, EngineError, explain
from reward_server.sandbox.docker.pool import DockerSlot
from reward_server.sandbox.leases import share
from reward_server.sandbox.output import Output
from reward_server.sandbox.payload import ENVIRONMENT, INSIDE, RunInstructions, pack
from reward_server.sandbox.pressure import PressureMonitor, lost_share
from reward_server.sandbox.run_report import RunReport
from reward_server.sandbox.seccomp import build_filter
from reward_server.sandbox.slot_sandbox import SlotSandbox, check_probe, probe_instructions
from reward_server.sandbox.stall import ActivitySample, StallDetector

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from reward_server.sandbox.base import Capacity
    from reward_server.sandbox.docker.container import Container
    from reward_server.sandbox.leases import SlotLease

log = logging.getLogger(__name__)

_BOOT_SECONDS = 30.0
_GRACE_SECONDS = 15.0
_STALE_SECONDS = 120.0
_OOM_FLAG_SECONDS = 2.0
_KILLED = 137


class DockerSandbox(SlotSandbox):
    """Runs programs in containers, one slot per core, the rest waiting in instructions."""

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
        super().__init__(Box("docker", image), capacity)
        self._image = image
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

    async def start(self) -> None:
        """Find the engine and the image, remove what dead servers left, and run an empty program.

        Raises:
            SetupError: when this machine cannot isolate programs; the text names the remedy.
        """
        self._seccomp = build_filter()
        try:
            await self._engine.check_runtime(self._runtime)
            await self._engine.remove_stale(_STALE_SECONDS)
            image = await self._engine.find_image(self._image)
            layers = await self._engine.install_scripts(image)
            await self._engine.remove_other_versions(layers)
        except EngineError as error:
            raise SetupError(explain(error, self._image)) from error
        self._base = ContainerBase(image, secrets.token_hex(8), layers, self._runtime)
        self.box = Box("docker", f"{self._image}@{image[:23]}")
        for index in range(len(self._slot_cores)):
            gpus = share(self._gpus, index, len(self._slot_cores))
            identity = SlotIdentity(self._first_uid + index, gpus)
            slot = DockerSlot(self._engine, identity, self._build, keeps_warm=self._is_warm)
            self._slots.append(slot)
        await self._run_probe()
        self._cleaner = self._spawn(self._remove_stale_forever())

    def _build(self, identity: SlotIdentity, plan: ContainerPlan) -> dict[str, Any]:
        return build_config(self._base, identity, plan)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _run_probe(self) -> None:
        instructions = probe_instructions(1 << 28)
        plan = self._plan(instructions, self._slot_cores[0])
        await check_probe(self._run_in(self._slots[0], instructions, plan), "container")

    async def _remove_stale_forever(self) -> None:
        while True:
            await asyncio.sleep(_STALE_SECONDS)
            try:
                await self._engine.remove_stale(_STALE_SECONDS)
            except EngineError as error:
                log.warning("failed to remove stale containers: %s", error)

    async def _run(self, lease: SlotLease, instructions: RunInstructions) -> Execution:
        slot, plan = self._slots[lease.slots[0]], self._plan(instructions, lease.cores)
        execution = await self._run_in(slot, instructions, plan)
        # Whoever waits takes the slot at once and may need another plan.
        if not self._is_closed and not self._leases.has_waiting:
            slot.prepare(plan)
        return execution

    def _plan(self, instructions: RunInstructions, cores: tuple[int, ...]) -> ContainerPlan:
        if instructions.public is None:
            return ContainerPlan.of(instructions.task_id, None, (0, 0), cores, instructions.limits)
        try:
            status = instructions.public.stat()
        except OSError as error:
            message = "the task's public data does not exist"
            raise InfrastructureError(ErrorKind.SANDBOX_UNAVAILABLE, message) from error
        identity = status.st_dev, status.st_ino
        public = str(self._to_host(instructions.public))
        return ContainerPlan.of(instructions.task_id, public, identity, cores, instructions.limits)

    async def _run_in(
        self, slot: DockerSlot, instructions: RunInstructions, plan: ContainerPlan
    ) -> Execution:
        begun, limits = time.monotonic(), instructions.limits
        container = await self._open(slot, plan)
        self._running.add(container)
        monitor = PressureMonitor(None, plan.cores)
        pressure_before = monitor.read()
        try:
            output = Output(instructions)
            request = self._request(plan.cores, instructions, output)
            stall_detector = StallDetector(
                limits.stall_seconds,
                lambda: ActivitySample(output.total_bytes, container.cpu_seconds),
                container.interrupt,
            )
            async with stall_detector:
                report, started = await self._converse(container, request, output, limits)
            pressure = lost_share(
                pressure_before, monitor.read(), report.cpu_seconds, was_full=False
            )
        finally:
            self._running.discard(container)
            await asyncio.shield(self._spawn(_remove(container)))
        report = replace(
            report,
            artifact=bytes(container.artifact),
            file_contents=container.file_contents,
            pressure=pressure,
        )
        execution = self._conclude(report, instructions, output, stall_detector)
        return replace(execution, boot_seconds=(started or begun) - begun)

    async def _open(self, slot: DockerSlot, plan: ContainerPlan) -> Container:
        self._refuse_if_closed()
        try:
            return await self._take(slot, plan)
        except EngineError as error:
            log.error("a container did not start: %s", error)  # noqa: TRY400 - no news in a trace
            message = "the box could not be started"
            raise InfrastructureError(ErrorKind.SANDBOX_UNAVAILABLE, message) from error

    async def _take(self, slot: DockerSlot, plan: ContainerPlan) -> Container:
        """Take a container; if that fails, restore the volume of scripts and try once more."""
        try:
            return await slot.take(plan)
        except EngineError as error:
            log.warning("a container did not start; trying again: %s", error)
            await self._engine.install_scripts(self._base.image)
            return await slot.take(plan)

    def _request(
        self, cores: tuple[int, ...], instructions: RunInstructions, output: Output
    ) -> dict[str, Any]:
        limits = instructions.limits
        return {
            "argv": [f"{ENVIRONMENT}/bin/python", f"{INSIDE}/launcher.py"],
            "environment": program_environment(len(cores)),
            "seccomp": self._seccomp,
            "payload": pack(instructions, output.tokens, has_cgroup=True),
            "boot_seconds": _BOOT_SECONDS,
            "wall_seconds": limits.wall_seconds,
            "heartbeat_seconds": limits.stall_seconds and min(1.0, limits.stall_seconds / 10),
            **instructions.collection,
        }

    async def _converse(
        self, container: Container, request: dict[str, Any], output: Output, limits: Limits
    ) -> tuple[RunReport, float | None]:
        """Have the container run its program; without a report, find out why there is none."""
        run = asyncio.create_task(container.run(request, output.out, output.err))
        report, started, is_overdue = None, None, False
        try:
            started = await _wait_for_start(container, run)
            async with asyncio.timeout(limits.wall_seconds + _GRACE_SECONDS) as deadline:
                output.on_excess = lambda: _interrupt(container, deadline)
                if started is not None:
                    report = await asyncio.shield(run)
        except TimeoutError:
            is_overdue = True
        finally:
            run.cancel()
            await asyncio.wait([run])
        if report is None:
            report = await self._reconstruct_report(
                container, output, started, is_overdue=is_overdue
            )
        return report, started

    async def _reconstruct_report(
        self, container: Container, output: Output, started: float | None, *, is_overdue: bool
    ) -> RunReport:
        """Build the report that the init did not send from the engine's state of the container.

        Raises:
            InfrastructureError: when that state does not blame the program.
        """
        state = await self._final_state(container, is_overdue=is_overdue)
        is_blamed = blame.explains_missing_report(
            out_of_memory=bool(state.get("OOMKilled")),
            ended_by_server=bool(state.get("Running")) and (is_overdue or output.exceeded),
        )
        if started is None or not is_blamed:
            log.error("a container was lost (%s): %s", state or "removed", container.errors)
            kind = ErrorKind.SANDBOX_UNAVAILABLE if started is None else ErrorKind.SANDBOX_LOST
            message = "the sandbox was lost while the program ran"
            raise InfrastructureError(kind, message)
        return RunReport(
            launched=True,
            start_ns=int(started * 1e9),
            end_ns=time.monotonic_ns(),
            exit_code=_KILLED,
            timed_out=is_overdue,
            interrupted=True,
            oom_kills=int(bool(state.get("OOMKilled"))),
        )

    async def _final_state(self, container: Container, *, is_overdue: bool) -> dict[str, Any]:
        """Return the last state of a container; the engine flags an OOM kill a little late."""
        state: dict[str, Any] = {}
        with contextlib.suppress(EngineError, TimeoutError):
            async with asyncio.timeout(_OOM_FLAG_SECONDS):
                while not state.get("OOMKilled"):
                    state = await self._engine.inspect_state(container.container_id)
                    if is_overdue:
                        break
                    await asyncio.sleep(0.1)
        return state

    async def aclose(self) -> None:
        """Kill every box and stop."""
        self._is_closed = True
        for container in list(self._running):
            await _remove(container)
        for slot in self._slots:
            await slot.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_SECONDS):
                await self._leases.wait_until_released()  # after that nobody needs the engine
        if self._cleaner is not None:
            self._cleaner.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self._engine.close)


async def _wait_for_start(
    container: Container, run: asyncio.Task[RunReport | None]
) -> float | None:
    """Return when the program started, or None if the run ended before."""
    started = asyncio.create_task(container.started.wait())
    try:
        async with asyncio.timeout(_BOOT_SECONDS + _GRACE_SECONDS):
            await asyncio.wait([started, run], return_when=asyncio.FIRST_COMPLETED)
    finally:
        started.cancel()
    return time.monotonic() if container.started.is_set() else None


def _interrupt(container: Container, deadline: asyncio.Timeout) -> None:
    """End a run that has printed too much, and leave its init little time to report."""
    container.interrupt()
    deadline.reschedule(asyncio.get_running_loop().time() + _GRACE_SECONDS)


async def _remove(container: Container) -> None:
    """Remove a container; if the engine fails, the next program will find out."""
    try:
        await container.remove()
    except EngineError as error:
        log.warning("a container could not be removed: %s", error)
