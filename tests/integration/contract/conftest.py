"""One started sandbox of each kind for the whole session."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.contract.boxes import MAKERS, SLOTS, bubblewrap, small_zygote, started

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from reward_server.sandbox.base import Sandbox
    from tests.integration.contract.boxes import Bench


# The folder of one kind of sandbox is collected only where TEST_SANDBOXES names that kind.
collect_ignore = [kind for kind in ("bubblewrap", "zygote", "docker") if kind not in MAKERS]


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


_DISTURBABLE: Mapping[str, Callable[[int], Sandbox]] = {
    "bubblewrap": bubblewrap,
    "zygote": small_zygote,
}


@pytest.fixture(params=[name for name in _DISTURBABLE if name in MAKERS])
def make_single(request: pytest.FixtureRequest) -> Callable[[int], Sandbox]:
    """How to make a sandbox that can be disturbed from outside."""
    return _DISTURBABLE[request.param]


@pytest.fixture
async def single(
    make_single: Callable[[int], Sandbox], public_folder: Path
) -> AsyncIterator[Bench]:
    """A sandbox of one slot, for faults put in from outside."""
    async with started(make_single(1), public_folder) as bench:
        yield bench
