"""A server of its own for each kind of sandbox under test."""

from __future__ import annotations

import shutil
import uuid
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.conftest import (
    SANDBOXES,
    RunningServer,
    sandbox_settings,
    start_server,
    stop_server,
)
from tests.integration.attacks.cases import HONEST, score

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session", params=SANDBOXES)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="session")
def server(
    kind: str, data_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer]:
    folder = data_dir.parent / f"reward-server-attacks-{uuid.uuid4()}"
    folder.mkdir(mode=0o755)
    for task in data_dir.glob("*/prepared"):
        shutil.copytree(task.parent, folder / task.parent.name)
    log = tmp_path_factory.mktemp(kind) / "log"
    process, url = start_server(folder, log, sandbox=sandbox_settings(kind))
    try:
        yield RunningServer(url, process.pid, log, folder)
    finally:
        stop_server(process)
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def client(server: RunningServer) -> Iterator[httpx.Client]:
    limits = httpx.Limits(max_connections=64)
    with httpx.Client(base_url=server.url, timeout=300, limits=limits) as client:
        yield client


@pytest.fixture(scope="session")
def honest(client: httpx.Client) -> dict[str, Any]:
    return score(client, HONEST)
