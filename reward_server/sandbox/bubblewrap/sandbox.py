"""Runs each program in a box made by bubblewrap: namespaces, seccomp, cgroups.

There are two ways to make the same box. Cold, every program has a `bwrap` and an interpreter of
its own. With a zygote, one process per slot has imported the usual packages inside a box of its own
and forks the program from there (`inside/zygote_server`): the seconds of importing are spent once.
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
from reward_server.sandbox import blame
from reward_server.sandbox.bubblewrap import command
from reward_server.sandbox.bubblewrap.binary import find_bubblewrap
from reward_server.sandbox.bubblewrap.cgroups import remove_stale_groups
from reward_server.sandbox.bubblewrap.package_guess import PackageGuess
from reward_server.sandbox.bubblewrap.resource_usage import ResourceUsage
from reward_server.sandbox.bubblewrap.slot import Slot
from reward_server.sandbox.bubblewrap.staging import stage
from reward_server.sandbox.leases import SlotLease, SlotLeases, share_cores
from reward_server.sandbox.output import PipedOutput, kept_bytes
from reward_server.sandbox.payload import RunInstructions, build_environment, pack
from reward_server.sandbox.run_report import RunReport, build_execution
from reward_server.sandbox.seccomp import build_filter
from reward_server.sandbox.stall import ActivitySample, StallDetector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reward_server.sandbox.base import Capacity

log = logging.getLogger(__name__)

_FOLDER = "reward-server-box-"
_BOOT_SECONDS = 30.0
_GRACE_SECONDS = 15.0
_REMEDY = (
    "bubblewrap needs user namespaces for unprivileged users "
    "(sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0)"
)


class BubblewrapSandbox:
    """Runs programs in bubblewrap boxes, one slot per core, the rest waiting in instructions."""

    def __init__(  # noqa: PLR0913, PLR0917 - one argument a setting
        self,
        environment: Path,
        image: str,
        capacity: Capacity,
        first_uid: int,
        preload: Sequence[str] | None = None,
        publics: Sequence[Path] = (),
    ) -> None:
        """Configure the sandbox; `start` makes it ready.

        With `preload`, programs are forked by zygotes that have imported these modules; `publics`
        are the public folders of the tasks known so far.
        """
        self.box = Box("bubblewrap" if preload is None else "zygote", image)
        self._environment = environment
        self._first_uid = first_uid
        self._preload = preload
        self._package_guess = PackageGuess(preload or ())
        self._publics = (command.SCRIPTS, *publics)
        self._slots: list[Slot] = []
        cores = sorted(os.sched_getaffinity(0))
        self._slot_cores = [share_cores(cores, i, capacity.slots) for i in range(capacity.slots)]
        self._contended_above = capacity.contended_above
        self._leases = SlotLeases(self._slot_cores, capacity.memory_bytes)
        self._folders: list[Path] = []

    async def start(self) -> None:
        """Find what boxes are made of, start the slot supervisors and run one empty program.

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
        await self._run_probe()

    async def _start_slots(self) -> None:
        seccomp = build_filter()
        zygote = None if self._preload is None else self._zygote_config
        for index, cores in enumerate(self._slot_cores):
            self._slots.append(Slot(index, cores, seccomp, self._staging, zygote))
        starts = (slot.start() for slot in self._slots)
        for error in await asyncio.gather(*starts, return_exceptions=True):
            if isinstance(error, InfrastructureError):
                raise SetupError(error.message) from error
            if error is not None:
                raise error

    def _zygote_config(self) -> dict[str, object]:
        """Return how a supervisor starts its zygote server; each fork sets its own threads."""
        publics = {name: self._staging.path(name) for name in self._staging.publics}
        return {
            "argv": command.build_zygote_command(self._sources, self._interpreter, publics),
            "environment": build_environment(1),
            "preload": list(self._preload or ()),
        }

    async def _run_probe(self) -> None:
        """Run an empty program, so that a machine without isolation fails at the start."""
        nothing = Instrumented(Program("pass"), (), Instrumentation("off"))
        memory_bytes = min(1 << 30, self._leases.memory_bytes)
        limits = Limits(30.0, memory_bytes, 1 << 20, 16, 64, 1 << 16, 1 << 16)
        try:
            execution = await self.execute(nothing, "probe", command.SCRIPTS, limits)
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
        """Make a folder that boxes can reach and that `aclose` removes."""
        folder = Path(tempfile.mkdtemp(prefix=f"{_FOLDER}{os.getpid()}-"))
        folder.chmod(0o755)
        self._folders.append(folder)
        return folder

    async def execute(
        self, instrumented: Instrumented, task_id: str, public: Path, limits: Limits
    ) -> Execution:
        """Run the program once in a fresh box and return what happened.

        Raises:
            InfrastructureError: `sandbox_unavailable` when no box could be started,
                `sandbox_lost` when one was lost through no act of the program.
        """
        if instrumented.failure is not None:
            return Execution(self.box, instrumented.failure)
        return await self._run_leased(RunInstructions(instrumented, limits, task_id, public))

    async def run(
        self, program: AdHocProgram, limits: Limits, queue_timeout_seconds: float
    ) -> Execution:
        """Run an ad hoc program once in a fresh box that has no task's data.

        Raises:
            TimeoutError: when it got no slot in time; nothing has run then.
            InfrastructureError: as `execute`.
        """
        instructions = RunInstructions.for_ad_hoc(program, limits)
        return await self._run_leased(instructions, queue_timeout_seconds)

    async def _run_leased(
        self, instructions: RunInstructions, queue_timeout_seconds: float | None = None
    ) -> Execution:
        queued_at, limits = time.monotonic(), instructions.limits
        async with self._leases.acquire(
            limits.cores, limits.memory_bytes, queue_timeout_seconds
        ) as lease:
            queue_seconds = time.monotonic() - queued_at
            with boundary(ErrorKind.SANDBOX_LOST, "execute"):
                execution = await self._run_with_retry(lease, instructions)
        return replace(execution, queue_seconds=queue_seconds)

    async def _run_with_retry(self, lease: SlotLease, instructions: RunInstructions) -> Execution:
        """Run the program; if its zygote died before the program began, try once more."""
        try:
            return await self._run(lease, instructions)
        except InfrastructureError as error:
            if self._preload is None or error.kind is not ErrorKind.SANDBOX_UNAVAILABLE:
                raise
            log.warning("zygote died; starting a new one")
            return await self._run(lease, instructions)

    async def _run(self, lease: SlotLease, instructions: RunInstructions) -> Execution:
        begun_ns, limits = time.monotonic_ns(), instructions.limits
        slot = self._slots[lease.slots[0]]
        request = self._request(lease.cores, instructions)
        await slot.start()  # before the usage is read: a new zygote is not the program's cost
        await slot.until_clean()
        slot.group.assign(lease.cores)
        slot.group.limit(limits.memory_bytes, limits.processes)
        usage = ResourceUsage(slot.group, lease.cores)
        kept = kept_bytes(instructions.ad_hoc, limits.output_bytes)
        output = PipedOutput(instructions.instrumented, limits.output_bytes, slot.interrupt, kept)
        stall_detector = StallDetector(
            limits.stall_seconds,
            lambda: ActivitySample(output.total_bytes, slot.cpu_seconds()),
            slot.interrupt,
        )
        try:
            payload = pack(instructions, output.tokens, has_cgroup=slot.has_limits)
            async with stall_detector:
                report, descriptors = await slot.run(
                    request,
                    [_memory_file(payload), *output.write_ends],
                    _BOOT_SECONDS + limits.wall_seconds + _GRACE_SECONDS,
                )
            report = _read_files(descriptors, report)
            await output.ended()
        except InfrastructureError as error:
            out_of_memory = usage.oom_kills > 0
            if error.kind is not ErrorKind.SANDBOX_LOST or not blame.explains_missing_report(
                out_of_memory=out_of_memory
            ):
                raise
            report = _killed_with_supervisor(begun_ns)
        finally:
            output.close()
        has_stalled = stall_detector.stalled and report.interrupted
        report = replace(
            usage.add_to(report),
            output_exceeded=output.exceeded,
            stalled_seconds=limits.stall_seconds if has_stalled else None,
        )
        blame.raise_if_sandbox_failed(report, output.err.text())
        execution = build_execution(
            report, self.box, output, instructions.fetch, self._contended_above
        )
        return replace(execution, boot_seconds=(report.start_ns - begun_ns) / 1e9)

    def _request(self, cores: tuple[int, ...], instructions: RunInstructions) -> dict[str, object]:
        name = None if instructions.public is None else self._staging.add(instructions.public)
        disk_bytes = instructions.limits.disk_bytes
        request: dict[str, object] = {
            "cores": cores,
            "boot_seconds": _BOOT_SECONDS,
            "wall_seconds": instructions.limits.wall_seconds,
            **instructions.collection,
        }
        if self._preload is None:
            public = None if name is None else self._staging.path(name)
            request["argv"] = command.build_command(
                self._sources, self._interpreter, instructions.task_id, public, disk_bytes
            )
            request["environment"] = build_environment(len(cores))
        else:
            request["zygote"] = {
                "task_id": instructions.task_id,
                "public": name,
                "disk_bytes": disk_bytes,
                "cores": cores,
                "threads": len(cores),
                "preloaded": self._package_guess.needs_packages(
                    instructions.instrumented.program.code
                ),
            }
        return request

    async def aclose(self) -> None:
        """Kill every box and stop."""
        for slot in self._slots:
            await slot.close()
        for folder in self._folders:
            shutil.rmtree(folder, ignore_errors=True)


def _remove_stale_folders() -> None:
    """Remove the folders of servers that no longer run."""
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


def _killed_with_supervisor(begun_ns: int) -> RunReport:
    """Return the report of a run whose supervisor the kernel killed along with its program."""
    return RunReport(
        launched=True,
        start_ns=begun_ns,
        end_ns=time.monotonic_ns(),
        exit_code=-signal.SIGKILL,
    )


def _read_files(descriptors: Sequence[int], report: RunReport) -> RunReport:
    """Return the report with the contents of the collected files; close their descriptors."""
    contents = []
    for descriptor in descriptors:
        with os.fdopen(descriptor, "rb") as file:
            contents.append(file.read())
    artifact = contents.pop(0) if report.artifact_status == "file" else None
    return replace(report, artifact=artifact, file_contents=contents)
