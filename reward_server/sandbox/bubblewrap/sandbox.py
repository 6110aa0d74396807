"""Boxes made by bubblewrap: namespaces, seccomp, cgroups, one program each.

Two ways lead to the same box. Cold, every program has a `bwrap` and an interpreter of its own.
With a zygote, one process per slot has imported the usual packages inside a box of its own and
forks the program from there (`inside/zygote`): the seconds of importing are spent once.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

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
from reward_server.sandbox.bubblewrap import command
from reward_server.sandbox.bubblewrap.binary import find_bubblewrap
from reward_server.sandbox.bubblewrap.cgroups import CgroupCounters, remove_stale_groups
from reward_server.sandbox.bubblewrap.slot import Slot
from reward_server.sandbox.bubblewrap.staging import stage
from reward_server.sandbox.cores import share_cores
from reward_server.sandbox.leases import SlotLease, SlotLeases
from reward_server.sandbox.output import Output, PipedOutput, kept_bytes
from reward_server.sandbox.package_guess import PackageGuess
from reward_server.sandbox.payload import RunInstructions, pack
from reward_server.sandbox.reporting import LeftBehind, RunReport, build_execution
from reward_server.sandbox.seccomp import build_filter
from reward_server.sandbox.slot_supervisor import SupervisorReport
from reward_server.sandbox.stall import ActivitySample, StallDetector
from reward_server.sandbox.usage import ResourceUsage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reward_server.sandbox.base import Capacity

log = logging.getLogger(__name__)

_INSIDE = Path(__file__).parents[1] / "inside"
_FOLDER = "reward-server-box-"
_BOOT_SECONDS = 30.0
_GRACE_SECONDS = 15.0
_REMEDY = (
    "bubblewrap needs user namespaces for unprivileged users "
    "(sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0)"
)


class BubblewrapSandbox:
    """Runs programs in bubblewrap boxes, one slot per core, the rest waiting in order."""

    def __init__(  # noqa: PLR0913, PLR0917 - one argument a setting
        self,
        environment: Path,
        image: str,
        capacity: Capacity,
        first_uid: int,
        preload: Sequence[str] | None = None,
        publics: Sequence[Path] = (),
    ) -> None:
        """Take what to build boxes from.

        With `preload`, programs are forked by zygotes that have imported these modules;
        `publics` are the folders programs are going to see, as far as they are known.
        """
        self.box = Box("bubblewrap" if preload is None else "zygote", image)
        self._environment = environment
        self._first_uid = first_uid
        self._preload = preload
        self._guess = PackageGuess(preload or ())
        self._publics = (_INSIDE, *publics)
        self._slots: list[Slot] = []
        cores = sorted(os.sched_getaffinity(0))
        self._shares = [share_cores(cores, i, capacity.slots) for i in range(capacity.slots)]
        self._contended_above = capacity.contended_above
        self._leases = SlotLeases(self._shares, capacity.memory_bytes)
        self._folders: list[Path] = []

    async def start(self) -> None:
        """Find what boxes are made of, start the keepers and try one empty box.

        Raises:
            SetupError: when this machine cannot isolate programs; the text names the remedy.
        """
        bubblewrap = find_bubblewrap()
        self._interpreter = command.find_interpreter(self._environment)
        remove_stale_groups()
        _remove_stale_folders()
        self._inside = self._make_folder()
        await asyncio.to_thread(command.compile_launcher, self._interpreter, self._inside)
        self._sources, self._staging = stage(
            bubblewrap, self._interpreter, self._inside, self._first_uid, self._make_folder
        )
        for public in self._publics:
            self._staging.add(public)
        await self._start_slots()
        await self._prove()

    async def _start_slots(self) -> None:
        seccomp = build_filter()
        zygote = None if self._preload is None else self._zygote
        for index, cores in enumerate(self._shares):
            self._slots.append(Slot(index, cores, seccomp, self._staging, zygote))
        starts = (slot.start() for slot in self._slots)
        for error in await asyncio.gather(*starts, return_exceptions=True):
            if isinstance(error, InfrastructureError):
                raise SetupError(error.message) from error
            if error is not None:
                raise error

    def _zygote(self) -> dict[str, object]:
        """Return how a keeper starts its zygote; the box's own threads are set at each fork."""
        publics = {name: self._staging.path(name) for name in self._staging.publics}
        return {
            "argv": command.build_zygote_command(self._sources, self._interpreter, publics),
            "environment": command.build_environment(1),
            "preload": list(self._preload or ()),
        }

    async def _prove(self) -> None:
        """Run an empty program, so that a machine that cannot isolate is found out now."""
        nothing = Instrumented(Program("pass"), (), Instrumentation("off"))
        memory_bytes = min(1 << 30, self._leases.memory_bytes)
        limits = Limits(30.0, memory_bytes, 1 << 20, 16, 64, 1 << 16, 1 << 16)
        try:
            execution = await self.execute(nothing, "probe", _INSIDE, limits)
        except InfrastructureError as error:
            message = f"no box can be started here ({error.message}; see the log): {_REMEDY}"
            if self._preload is not None:
                message += (
                    ", and zygotes need to nest them (or: REWARD_SERVER_SANDBOX__KIND=bubblewrap)"
                )
            raise SetupError(message) from error
        if execution.exit_code != 0:
            message = f"an empty program failed in its box: {execution.stderr_tail}"
            raise SetupError(message)

    def _make_folder(self) -> Path:
        """Make a folder that boxes can reach and that goes with the sandbox."""
        folder = Path(tempfile.mkdtemp(prefix=f"{_FOLDER}{os.getpid()}-"))
        folder.chmod(0o755)
        self._folders.append(folder)
        return folder

    async def execute(
        self, instrumented: Instrumented, task_id: str, public: Path, limits: Limits
    ) -> Execution:
        """Run the program once in a fresh box and tell what happened.

        Raises:
            InfrastructureError: `sandbox_unavailable` when no box could be started,
                `sandbox_lost` when one was lost through no act of the program.
        """
        if instrumented.failure is not None:
            return Execution(self.box, instrumented.failure)
        return await self._carry_out(RunInstructions(instrumented, limits, task_id, public))

    async def run(self, errand: AdHocProgram, limits: Limits, patience_seconds: float) -> Execution:
        """Run a bare program once in a fresh box that has no task's data.

        Raises:
            TimeoutError: when it got no place within its patience; nothing has run then.
            InfrastructureError: as `execute`.
        """
        return await self._carry_out(RunInstructions.of(errand, limits), patience_seconds)

    async def _carry_out(
        self, order: RunInstructions, patience_seconds: float | None = None
    ) -> Execution:
        asked, limits = time.monotonic(), order.limits
        lease = self._leases.hold(limits.cores, limits.memory_bytes, patience_seconds)
        async with lease as lent:
            queue_seconds = time.monotonic() - asked
            with boundary(ErrorKind.SANDBOX_LOST, "execute"):
                execution = await self._try(lent, order)
        return replace(execution, queue_seconds=queue_seconds)

    async def _try(self, lease: SlotLease, order: RunInstructions) -> Execution:
        """Run the program; a zygote that is lost before it began costs the program nothing."""
        try:
            return await self._run(lease, order)
        except InfrastructureError as error:
            if self._preload is None or error.kind is not ErrorKind.SANDBOX_UNAVAILABLE:
                raise
            log.warning("a zygote was lost and is replaced")
            return await self._run(lease, order)

    async def _run(self, lease: SlotLease, order: RunInstructions) -> Execution:
        begun_ns, limits = time.monotonic_ns(), order.limits
        slot = self._slots[lease.places[0]]
        request = self._request(lease.cores, order)
        await slot.start()  # what a new keeper or zygote costs is not the program's
        await slot.until_clean()
        slot.group.assign(lease.cores)
        slot.group.limit(limits.memory_bytes, limits.processes)
        account = ResourceUsage(slot.group, lease.cores)
        kept = kept_bytes(order.errand, limits.output_bytes)
        output = PipedOutput(order.instrumented, limits.output_bytes, slot.interrupt, kept)
        watch = StallDetector(
            limits.stall_seconds,
            lambda: ActivitySample(output.total_bytes, slot.cpu_seconds()),
            slot.interrupt,
        )
        try:
            payload = pack(order, output.tokens, counted=slot.has_limits)
            async with watch:
                report, descriptors = await slot.run(
                    request,
                    [_memory_file(payload), *output.write_ends],
                    _BOOT_SECONDS + limits.wall_seconds + _GRACE_SECONDS,
                )
            left = _read_and_close(descriptors, report, order)
            await output.ended()
        except InfrastructureError as error:
            if error.kind is not ErrorKind.SANDBOX_LOST or account.count().oom_kills == 0:
                raise
            report, left = _killed_with_its_keeper(begun_ns), LeftBehind()
        finally:
            output.close()
        stalled_seconds = limits.stall_seconds if watch.stalled and report.killed else None
        execution = self._tell(report, account, output, left, stalled_seconds)
        return replace(execution, boot_seconds=(report.start_ns - begun_ns) / 1e9)

    def _tell(
        self,
        report: SupervisorReport,
        account: ResourceUsage,
        output: Output,
        left: LeftBehind,
        stalled_seconds: float | None,
    ) -> Execution:
        counted = account.count()
        was_ended = output.exceeded or stalled_seconds is not None
        self._check_ours(report, counted, output.err.text(), was_ended=was_ended)
        seen = {
            "cpu_seconds": counted.cpu_seconds or report.cpu_seconds,
            "peak_memory_bytes": counted.peak_memory_bytes or report.peak_memory_bytes,
            "oom_kills": counted.oom_kills,
            "processes_refused": counted.processes_refused,
        }
        told = RunReport(**{**vars(report), **seen})
        pressure = account.pressure(told.cpu_seconds, was_full=counted.memory_refused > 0)
        return replace(
            build_execution(self.box, told, output, left, stalled_seconds),
            pressure=pressure,
            contended=pressure is not None and pressure > self._contended_above,
        )

    def _request(self, cores: tuple[int, ...], order: RunInstructions) -> dict[str, object]:
        name = None if order.public is None else self._staging.add(order.public)
        disk_bytes = order.limits.disk_bytes
        request: dict[str, object] = {
            "cores": cores,
            "boot_seconds": _BOOT_SECONDS,
            "wall_seconds": order.limits.wall_seconds,
            **order.wanted,
        }
        if self._preload is None:
            seen = None if name is None else self._staging.path(name)
            request["argv"] = command.build_command(
                self._sources, self._interpreter, order.task_id, seen, disk_bytes
            )
            request["environment"] = command.build_environment(len(cores))
        else:
            request["zygote"] = {
                "task_id": order.task_id,
                "public": name,
                "disk_bytes": disk_bytes,
                "cores": cores,
                "threads": len(cores),
                "preloaded": self._guess.wants(order.instrumented.program.code),
            }
        return request

    @staticmethod
    def _check_ours(
        report: SupervisorReport, counted: CgroupCounters, stderr: str, *, was_ended: bool
    ) -> None:
        """Raise where the host, not the program, ended the run."""
        if not report.launched:
            log.error("a box did not start (status %s): %s", report.status, stderr)
            message = "the box could not be started"
            raise InfrastructureError(ErrorKind.SANDBOX_UNAVAILABLE, message)
        has_reason = was_ended or report.timed_out or counted.oom_kills > 0
        if report.status < 0 and not has_reason:
            log.error("a box was lost (status %s)", report.status)
            message = "the sandbox was lost while the program ran"
            raise InfrastructureError(ErrorKind.SANDBOX_LOST, message)

    async def aclose(self) -> None:
        """Kill every box and stop."""
        for slot in self._slots:
            await slot.close()
        for folder in self._folders:
            shutil.rmtree(folder, ignore_errors=True)


def _remove_stale_folders() -> None:
    """Remove the folders that servers which are gone have left behind."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
        pid = folder.name.removeprefix(_FOLDER).partition("-")[0]
        if pid.isdigit() and not Path("/proc", pid).exists():
            shutil.rmtree(folder, ignore_errors=True)


def _memory_file(content: bytes) -> int:
    """Write the payload into a memory file and return its descriptor."""
    descriptor = os.memfd_create("payload", os.MFD_CLOEXEC)
    with os.fdopen(descriptor, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _killed_with_its_keeper(begun_ns: int) -> SupervisorReport:
    """Stand in for the report of a keeper that the program's hunger has taken along."""
    report = SupervisorReport()
    report.launched, report.status = True, -signal.SIGKILL
    report.start_ns, report.end_ns = begun_ns, time.monotonic_ns()
    return report


def _read_and_close(
    descriptors: Sequence[int], report: SupervisorReport, order: RunInstructions
) -> LeftBehind:
    contents = []
    for descriptor in descriptors:
        with os.fdopen(descriptor, "rb") as file:
            contents.append(file.read())
    artifact = contents.pop(0) if report.artifact == "file" else None
    return LeftBehind(artifact, contents, order.fetch)
