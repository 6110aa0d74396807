"""One started sandbox of each kind for the whole session."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reward_server.sandbox.docker.engine import make_client
from tests.integration.contract.boxes import MAKERS, SLOTS, docker, started

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from reward_server.sandbox.base import Sandbox
    from tests.integration.contract.boxes import Bench
    from tests.integration.contract.containers import Api


# Tests of one kind of sandbox alone are there only where that kind is under test.
collect_ignore_glob = [
    pattern
    for kind, pattern in {
        "bubblewrap": "test_sandbox_defences.py",
        "zygote": "test_zygote*",
        "docker": "test_docker*",
    }.items()
    if kind not in MAKERS
]


@pytest.fixture(scope="session")
def public_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="public-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "train.csv").write_text("id,label\n1,0\n")
        yield folder


@pytest.fixture(scope="session", params=sorted(MAKERS))
async def bench(request: pytest.FixtureRequest, public_folder: Path) -> AsyncIterator[Bench]:
    async with started(MAKERS[request.param](SLOTS), public_folder) as bench:
        yield bench


@pytest.fixture(params=[name for name in ("bubblewrap", "zygote") if name in MAKERS])
def make_single(request: pytest.FixtureRequest) -> Callable[[int], Sandbox]:
    """How to make a sandbox that can be disturbed from outside."""
    return MAKERS[request.param]


@pytest.fixture
async def single(
    make_single: Callable[[int], Sandbox], public_folder: Path
) -> AsyncIterator[Bench]:
    """A sandbox of one slot, for faults put in from outside."""
    async with started(make_single(1), public_folder) as bench:
        yield bench


@pytest.fixture(scope="session")
def api() -> Iterator[Api]:
    client = make_client(None)
    yield client
    client.close()


@pytest.fixture
async def container(public_folder: Path) -> AsyncIterator[Bench]:
    """A docker sandbox of one slot, for faults put in from outside."""
    async with started(docker(1), public_folder) as bench:
        yield bench
