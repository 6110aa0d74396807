"""Servers for tests of jobs, and data directories of one's own."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from tests.conftest import start_server, stop_server
from tests.support.job_client import KEYS, SETTINGS, JobClient, own_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def own_dir(data_dir: Path) -> Iterator[Path]:
    with own_folder(data_dir) as folder:
        yield folder


@pytest.fixture(scope="session")
def job_clients(
    data_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, JobClient]]:
    log = tmp_path_factory.mktemp("team") / "log"
    with own_folder(data_dir) as folder:
        process, url = start_server(folder, log, SETTINGS)
        try:
            with (
                JobClient(url, KEYS["team"], process.pid) as team,
                JobClient(url, KEYS["guest"], process.pid) as guest,
            ):
                yield {"team": team, "guest": guest}
        finally:
            stop_server(process)


@pytest.fixture
def team(job_clients: dict[str, JobClient]) -> JobClient:
    return job_clients["team"]


@pytest.fixture
def guest(job_clients: dict[str, JobClient]) -> JobClient:
    return job_clients["guest"]


@pytest.fixture
def run_id() -> str:
    return str(uuid.uuid4())
