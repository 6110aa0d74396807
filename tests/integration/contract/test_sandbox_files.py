"""No two boxes share a file at the same time.

Two boxes with a file in common could communicate by locking it, although neither can write to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from typing import TYPE_CHECKING

import pytest

from reward_server.sandbox.bubblewrap import staging
from reward_server.sandbox.bubblewrap.command import Sources
from tests.conftest import SANDBOXES
from tests.integration.contract.boxes import (
    SLOTS,
    bubblewrap,
    small_zygote,
    started,
    unique,
    until_asleep,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from reward_server.sandbox.bubblewrap.sandbox import BubblewrapSandbox
    from tests.integration.contract.boxes import Bench

FILES = """
import fcntl, glob, json, os, sys, time
names = [
    "/workdir/task/prepared/public/train.csv", "/environment/pyvenv.cfg", "/usr/bin/env",
    "/etc/ld.so.cache", os.path.realpath(sys.executable), *glob.glob("/inside/launcher.py*"),
    *glob.glob("/lib/*/libc.so.6"), "/dev/null", "/dev/zero", "/dev/full", "/dev/urandom",
    *glob.glob("/proc/self/ns/*"),
]
files = {name: open(name, "rb") for name in names if os.path.exists(name)}
"""
HOLD = f"""{FILES}
started = False
while True:
    for file in files.values():  # again and again: the other may just be trying this one
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # locked by the other, or through another name of the same file
            pass
    if not started:
        os.posix_spawnp("sleep", ["MARK", "600"], os.environ)
        started = True
    time.sleep(0.02)
"""
LISTEN = f"""{FILES}
heard, until = set(), time.monotonic() + 2
while time.monotonic() < until:
    for name, file in files.items():
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.flock(file, fcntl.LOCK_UN)
        except BlockingIOError:
            heard.add(name)
    time.sleep(0.05)
print(json.dumps([sorted(files), sorted(heard)]))
"""
TOUCH = """
import os
try:
    os.utime("/dev/null")
    print("CHANGED")
except OSError:
    print("REFUSED")
"""
# SECURITY.md names these: what containers, and what an ordinary user's boxes, have in common.
SHARED = (
    ("/proc/self/ns/time", "/proc/self/ns/user")
    if "docker" in SANDBOXES
    else ("/proc/self/ns/time", "/dev/")
    if os.geteuid() != 0
    else ()
)
own_files_only = pytest.mark.skipif("docker" in SANDBOXES, reason="boxes made by bubblewrap")


async def listen(bench: Bench) -> tuple[set[str], set[str]]:
    """Have one program hold locks and another try them; return all names and the locked ones."""
    mark = unique("holder")
    holder = asyncio.create_task(bench.run(HOLD.replace("MARK", mark)))
    await until_asleep(mark)
    tried, heard = json.loads(await bench.says(LISTEN))
    assert not holder.done(), "it held the locks all the time"
    holder.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await holder
    return set(tried), set(heard)


async def test_a_lock_is_visible_in_no_other_box(bench: Bench) -> None:
    tried, heard = await listen(bench)
    assert "/workdir/task/prepared/public/train.csv" in tried
    assert len(tried) >= 8
    assert {name for name in heard if not name.startswith(SHARED)} == set()


@own_files_only
@pytest.mark.parametrize("make", [bubblewrap, small_zygote])
async def test_without_overlays_files_are_shared(
    make: Callable[[int], BubblewrapSandbox], public_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sources, "show", lambda _, folder, place: ("--ro-bind", folder, place))
    async with started(make(SLOTS), public_folder) as bench:
        tried, heard = await listen(bench)
    assert {name for name in tried if not name.startswith(("/dev/", "/proc/"))} <= heard


@own_files_only
@pytest.mark.skipif(os.geteuid() != 0, reason="who cannot make devices shares the machine's")
@pytest.mark.parametrize("make", [bubblewrap, small_zygote])
async def test_without_devices_of_its_own_a_slot_shares_the_machines(
    make: Callable[[int], BubblewrapSandbox], public_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with started(make(SLOTS), public_folder) as bench:
        assert await bench.says(TOUCH) == "REFUSED\n"
    monkeypatch.setattr(staging, "DEVICE_FOLDER", "nowhere")
    async with started(make(SLOTS), public_folder) as bench:
        _, heard = await listen(bench)
        assert heard == {"/dev/null", "/dev/zero", "/dev/full", "/dev/urandom"}
