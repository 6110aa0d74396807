"""The engine, and a docker sandbox of one slot for each test that disturbs one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reward_server.sandbox.docker.engine import make_client
from tests.integration.contract.boxes import docker, started

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from tests.integration.contract.boxes import Bench
    from tests.integration.contract.docker.containers import Api


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
