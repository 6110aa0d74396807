"""The sandboxes under test, and the helpers that tests of all of them share."""

from __future__ import annotations

import asyncio
import os
import re
import uuid
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from reward_server.model import (
    Instrumentation,
    Instrumented,
    Limits,
    Marker,
    Milestone,
    Program,
)
from reward_server.sandbox.base import Capacity
from reward_server.sandbox.bubblewrap.cgroups import CgroupV1, CgroupV2
from reward_server.sandbox.bubblewrap.sandbox import BubblewrapSandbox
from reward_server.sandbox.docker.sandbox import DockerSandbox
from tests.conftest import IMAGE, SANDBOXES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping

    import pytest

    from reward_server.model import Execution
    from reward_server.sandbox.base import Sandbox

ROOT = Path(__file__).parents[3]
# Accounts of its own for each process that runs tests beside others.
FIRST_UID = 730_000 + 1000 * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
SLOTS = 2
MEMORY_BYTES = 4 << 30
LIMITS = Limits(
    wall_seconds=30.0,
    memory_bytes=512 << 20,
    disk_bytes=16 << 20,
    processes=64,
    open_files=256,
    output_bytes=8 << 20,
    artifact_bytes=1 << 20,
)
PRELOAD = ("numpy", "pandas", "sklearn.linear_model")
DONE = "open('submission.csv', 'w').write('id\\n1\\n')\n"


def bubblewrap(slots: int = SLOTS, first_uid: int = FIRST_UID) -> BubblewrapSandbox:
    capacity = Capacity(slots, MEMORY_BYTES)
    return BubblewrapSandbox(ROOT / ".venv-sandbox", "test", capacity, first_uid)


def zygote(slots: int = SLOTS, first_uid: int = FIRST_UID + 200) -> BubblewrapSandbox:
    environment = ROOT / ".venv-sandbox"
    capacity = Capacity(slots, MEMORY_BYTES)
    return BubblewrapSandbox(environment, "test", capacity, first_uid, PRELOAD)


def small_zygote(slots: int = SLOTS, first_uid: int = FIRST_UID + 400) -> BubblewrapSandbox:
    """Make one that has imported little, so that many can be started."""
    sandbox = zygote(slots, first_uid)
    sandbox._preload = ("numpy.random",)
    return sandbox


def full_zygote(slots: int = SLOTS, first_uid: int = FIRST_UID + 300) -> BubblewrapSandbox:
    """Make one that forks every program from the process with the packages."""
    sandbox = zygote(slots, first_uid)
    sandbox._package_guess._named = re.compile("")
    return sandbox


def docker(slots: int = SLOTS, first_uid: int = FIRST_UID, **more: Any) -> DockerSandbox:  # noqa: ANN401
    return DockerSandbox(IMAGE, Capacity(slots, MEMORY_BYTES), first_uid, **more)


_ALL: Mapping[str, Callable[[int], Sandbox]] = {
    "bubblewrap": bubblewrap,
    "zygote": zygote,
    "full zygote": full_zygote,
    "docker": docker,
}
MAKERS: Mapping[str, Callable[[int], Sandbox]] = {
    name: make for name, make in _ALL.items() if name.split()[-1] in SANDBOXES
}


@dataclass(frozen=True, slots=True)
class Bench:
    """A started sandbox and the public folder its programs see."""

    sandbox: Any
    public: Path

    async def run(
        self,
        code: str,
        markers: Iterable[Marker] = (),
        *,
        task_id: str = "task",
        **limits: Any,  # noqa: ANN401 - fields of Limits
    ) -> Execution:
        instrumented = Instrumented(Program(code), tuple(markers), Instrumentation("off"))
        wanted = replace(LIMITS, **limits)
        execution: Execution = await self.sandbox.execute(
            instrumented, task_id, self.public, wanted
        )
        return execution

    async def says(self, code: str, **limits: Any) -> str:  # noqa: ANN401 - fields of Limits
        """Run a program that must end well and return what it printed."""
        execution = await self.run(code, **limits)
        assert execution.exit_code == 0, execution
        return execution.stdout_tail


@asynccontextmanager
async def started(sandbox: Sandbox, public: Path) -> AsyncIterator[Bench]:
    try:
        await sandbox.start()
        yield Bench(sandbox, public)
    finally:
        await sandbox.aclose()


def after(code: str, *texts: str) -> tuple[Marker, ...]:
    """Place the milestones 1, 2, 3 … after the statements that start with these texts."""
    return tuple(
        _marker(code, text, Milestone(number)) for number, text in enumerate(texts, start=1)
    )


def _marker(code: str, text: str, milestone: Milestone) -> Marker:
    for number, line in enumerate(re.split("\r\n|\n|\r", code), start=1):
        if line.lstrip().startswith(text):
            column = len(line) - len(line.lstrip())
            return Marker(number, len(line[:column].encode()), milestone)
    raise AssertionError(text)


def unique(name: str) -> str:
    """Return a task id that marks the processes of this box among all of the machine."""
    return f"{name}-{uuid.uuid4().hex}"


def living(mark: str) -> list[str]:
    """Return the command lines on this machine that carry the mark and are not dead yet."""
    found = []
    for process in psutil.process_iter():
        try:
            line = " ".join(process.cmdline())
            if mark in line and process.status() != psutil.STATUS_ZOMBIE:
                found.append(line)
        except psutil.Error:
            continue
    return found


async def until_asleep(mark: str) -> None:
    """Wait for a process that calls itself by the mark."""
    while not any(line.startswith(mark) for line in living(mark)):  # noqa: ASYNC110 - polled
        await asyncio.sleep(0.01)


async def until_gone(mark: str) -> None:
    while living(mark):  # noqa: ASYNC110 - there is no event to wait for
        await asyncio.sleep(0.01)


def sleeper(mark: str) -> str:
    """Return a program that calls itself by the mark and sleeps."""
    return f"import os; os.execvp('sleep', ['{mark}', '600'])"


def descendants() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


def own_cgroups() -> set[str]:
    """Return the cgroup folders that belong to this process."""
    root, pattern = Path("/sys/fs/cgroup"), f"reward_server/{os.getpid()}-*"
    return {str(path) for path in (*root.glob(pattern), *root.glob(f"*/{pattern}"))}


async def account_of(sandbox: Sandbox, public: Path) -> int:
    """Return whom the host takes a program for."""
    mark = unique("account")
    async with started(sandbox, public) as bench:
        run = asyncio.create_task(bench.run(sleeper(mark), task_id=mark))
        await until_asleep(mark)
        (process,) = (p for p in psutil.process_iter() if _name(p) == mark)
        account: int = process.uids().real
        process.kill()
        await run
        return account


def _name(process: psutil.Process) -> str:
    try:
        line: list[str] = process.cmdline()
    except psutil.Error:
        return ""
    return line[0] if line else ""


def unlimit_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no group limit the number of processes."""
    for group in (CgroupV1, CgroupV2):
        monkeypatch.setattr(group, "limit", _without_process_limit(group.limit))


def _without_process_limit(limit: Callable[..., None]) -> Callable[..., None]:
    def changed(self: Any, memory_bytes: int, processes: int) -> None:  # noqa: ANN401
        del processes
        limit(self, memory_bytes, 10_000)

    return changed
