"""A real server with one light task, for trainers' own code to talk to."""

from __future__ import annotations

import os
import tempfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from reward_server.tasks.preparation.prepare import prepare_task
from reward_server.tasks.registry import Registry
from tests.conftest import RunningServer, start_server, stop_server
from tests.integration.adapters.programs import PROGRAMS
from tests.support.job_client import TASK
from trainer_client.run import RUN_ID, URL

if TYPE_CHECKING:
    from collections.abc import Iterator

# Programs of this folder nap or do next to nothing, so more may run than there are cores.
SETTINGS = {"REWARD_SERVER_SANDBOX__SLOTS": "4", "REWARD_SERVER_GRADE__PROCESSES": "1"}
# Nobody listens there, and nobody is waited for.
GONE: dict[str, Any] = {"url": "http://127.0.0.1:9", "outage_seconds": 0, "deadline_seconds": 5}


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    log = tmp_path_factory.mktemp("adapters") / "log"
    # Not pytest's own folder: that is closed to the account Postgres runs as under root.
    with tempfile.TemporaryDirectory(prefix="reward-server-adapters-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        prepare_task(Registry(folder).folder(TASK), folder)
        process, url = start_server(folder, log, SETTINGS)
        try:
            yield RunningServer(url, process.pid, log, folder)
        finally:
            stop_server(process)


@pytest.fixture(scope="session")
def http(server: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=120) as client:
        yield client


@pytest.fixture(scope="session")
def plain(http: httpx.Client) -> dict[str, dict[str, Any]]:
    """What `POST /score` answers for each of the programs."""
    answers = {}
    for name, completion in PROGRAMS.items():
        response = http.post("/score", json={"task_id": TASK, "completion": completion})
        assert response.status_code == 200, response.text
        answers[name] = response.json()
    return answers


@pytest.fixture(params=sorted(PROGRAMS))
def named(request: pytest.FixtureRequest) -> str:
    """Each program by its name."""
    name: str = request.param
    return name


@pytest.fixture
def run_id() -> str:
    """A run of the test's own."""
    return str(uuid.uuid4())


@pytest.fixture
def environment(server: RunningServer, run_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Name the server as a trainer's environment does."""
    monkeypatch.setitem(os.environ, URL, server.url)
    monkeypatch.setitem(os.environ, RUN_ID, run_id)


def stored(http: httpx.Client, run_id: str) -> list[dict[str, Any]]:
    """Return the solutions of a run."""
    listed = http.get("/v1/solutions", params={"run_id": run_id}).json()
    solutions: list[dict[str, Any]] = listed["solutions"]
    return solutions


def agree(measures: dict[str, Any], answer: dict[str, Any]) -> None:
    """Assert that a trainer keeps of a program what `POST /score` says, all of it."""
    assert measures["score"] == pytest.approx(answer["reward"])  # some keep half of the digits
    assert measures["valid"] == answer["valid"]
    assert measures["milestones"] == len(answer["milestones"])
    assert measures["medal"] == (answer["medal"] is not None)
    assert measures["timed_out"] == 0
    assert (measures["duration_seconds"] > 0) == (answer["duration_seconds"] > 0)
    assert set(measures) >= {"improvement", "cpu_seconds", "contended", "queue_seconds"}
