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

from reward_server.errors import InfrastructureError, SetupError
from reward_server.model import (
    Box,
    ErrorKind,
    Execution,
)
from reward_server.sandbox import blame
from reward_server.sandbox.bubblewrap import command
from reward_server.sandbox.bubblewrap.binary import find_bubblewrap
from reward_server.sandbox.bubblewrap.cgroups import remove_stale_groups
from reward_server.sandbox.bubblewrap.package_guess import PackageGuess
from reward_server.sandbox.bubblewrap.resource_usage import ResourceUsage
from reward_server.sandbox.bubblewrap.slot import Slot
from reward_server.sandbox.bubblewrap.staging import stage
from reward_server.sandbox.output import PipedOutput
from reward_server.sandbox.payload import RunInstructions, build_environment, pack
from reward_server.sandbox.run_report import RunReport
from reward_server.sandbox.seccomp import build_filter
from reward_server.sandbox.slot_sandbox import SlotSandbox, check_probe, probe_instructions
from reward_server.sandbox.stall import ActivitySample, StallDetector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reward_server.sandbox.base import Capacity
    from reward_server.sandbox.leases import SlotLease

log = logging.getLogger(__name__)

_FOLDER = "reward-server-box-"
_BOOT_SECONDS = 30.0
_GRACE_SECONDS = 15.0
_REMEDY = (
    "bubblewrap needs user namespaces for unprivileged users "
    "(sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0)"
)


class BubblewrapSandbox(SlotSandbox):
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
        super().__init__(Box("bubblewrap" if preload is None else "zygote", image), capacity)
        self._environment = environment
        self._first_uid = first_uid
        self._preload = preload
        self._package_guess = PackageGuess(preload or ())
        self._publics = (command.SCRIPTS, *publics)
        self._slots: list[Slot] = []
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
        instructions = probe_instructions(min(1 << 30, self._leases.memory_bytes), command.SCRIPTS)
        remedy = f": {_REMEDY}"
        if self._preload is not None:
            remedy += ", and zygotes need to nest them (or: REWARD_SERVER_SANDBOX__KIND=bubblewrap)"
        await check_probe(self._run_leased(instructions), "box", remedy)

    def _make_folder(self) -> Path:
        """Make a folder that boxes can reach and that `aclose` removes."""
        folder = Path(tempfile.mkdtemp(prefix=f"{_FOLDER}{os.getpid()}-"))
        folder.chmod(0o755)
        self._folders.append(folder)
        return folder

    async def _run(self, lease: SlotLease, instructions: RunInstructions) -> Execution:
        """Run the program; if its zygote died before the program began, try once more."""
        try:
            return await self._run_once(lease, instructions)
        except InfrastructureError as error:
            if self._preload is None or error.kind is not ErrorKind.SANDBOX_UNAVAILABLE:
                raise
            log.warning("zygote died; starting a new one")
            return await self._run_once(lease, instructions)

    async def _run_once(self, lease: SlotLease, instructions: RunInstructions) -> Execution:
        begun_ns, limits = time.monotonic_ns(), instructions.limits
        slot = self._slots[lease.slots[0]]
        request = self._request(lease.cores, instructions)
        await slot.start()  # before the usage is read: a new zygote is not the program's cost
        await slot.until_clean()
        slot.group.assign(lease.cores)
        slot.group.limit(limits.memory_bytes, limits.processes)
        usage = ResourceUsage(slot.group, lease.cores)
        output = PipedOutput(instructions, slot.interrupt)
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
        report = usage.add_to(report)
        execution = self._conclude(report, instructions, output, stall_detector)
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
        self._is_closed = True
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
