"""One server with two slots and keys, and clients of it."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from tests.conftest import start_server, stop_server
from tests.support.job_client import KEYS, SETTINGS, JobClient, own_folder
from trainer_client import AsyncRewardClient, RewardClient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def client_server(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JobClient]:
    log = tmp_path_factory.mktemp("client") / "log"
    with own_folder(data_dir) as folder:
        process, url = start_server(folder, log, SETTINGS)
        try:
            with JobClient(url, KEYS["team"], process.pid) as job_client:
                yield job_client
        finally:
            stop_server(process)


@pytest.fixture(scope="session")
def url(client_server: JobClient) -> str:
    return str(client_server.http.base_url)


@pytest.fixture
def job_client(client_server: JobClient) -> JobClient:
    return client_server


@pytest_asyncio.fixture
async def trainer(url: str) -> AsyncIterator[AsyncRewardClient]:
    async with AsyncRewardClient(url, KEYS["team"]) as client:
        yield client


@pytest.fixture
def plain(url: str) -> Iterator[RewardClient]:
    with RewardClient(url, KEYS["team"]) as client:
        yield client


@pytest.fixture
def run_id() -> str:
    return str(uuid.uuid4())
