"""Real training by TRL on the CPU, with a real reward server; see `make test-trainers`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.conftest import RunningServer, start_server, stop_server
from tests.integration.verl.conftest import BOOK, NAPPING

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def arena(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    log = tmp_path_factory.mktemp("arena") / "log"
    process, url = start_server(data_dir, log, NAPPING)
    try:
        yield RunningServer(url, process.pid, log, data_dir)
    finally:
        stop_server(process)


@pytest.fixture(scope="session")
def asked(arena: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=arena.url, timeout=60) as client:
        yield client


@pytest.fixture(scope="session")
def models() -> Iterator[Path]:
    """Make a tiny policy whose words are whole answers, and its tokenizer."""
    from trainer_client.integrations.verl.phrases import make  # noqa: PLC0415  # imports torch

    with tempfile.TemporaryDirectory(prefix="reward-server-trl-") as name:
        make(Path(name), BOOK)
        yield Path(name)
