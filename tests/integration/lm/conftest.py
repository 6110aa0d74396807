"""A real vLLM, started by `.ci/lm` with the model from a wheel; `make test-lm` runs all of it."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.conftest import LM_PID, LM_URL, start_server, stop_server

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

if LM_URL is None or not LM_PID:
    message = "tests/integration/lm need the vLLM of `make test-lm`"
    raise pytest.UsageError(message)

MODEL = "SmolLM2-135M-Instruct"
ANSWER_SECONDS = 900
BY_LM = {
    "REWARD_SERVER_INSTRUMENT__KIND": "lm",
    "REWARD_SERVER_INSTRUMENT__URL": f"{LM_URL}/v1",
    "REWARD_SERVER_INSTRUMENT__MODEL": MODEL,
    "REWARD_SERVER_INSTRUMENT__LM_DEADLINE_SECONDS": "600",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests last that stop the language model."""
    items.sort(key=lambda item: item.get_closest_marker("ends_the_lm") is not None)


@pytest.fixture(scope="session")
def lm() -> Iterator[httpx.Client]:
    with httpx.Client(base_url=LM_URL or "", timeout=ANSWER_SECONDS) as client:
        yield client


def counted(lm: httpx.Client, name: str) -> int:
    """Return the sum of one of vLLM's own counters."""
    lines = lm.get("/metrics").text.splitlines()
    return round(sum(float(line.split()[-1]) for line in lines if line.startswith(f"{name}{{")))


def questions_answered(lm: httpx.Client) -> int:
    return counted(lm, "vllm:request_success_total")


@contextmanager
def serving(data_dir: Path, settings: dict[str, str]) -> Iterator[httpx.Client]:
    """Run a server with these settings."""
    with tempfile.TemporaryDirectory() as folder:
        process, url = start_server(data_dir, Path(folder, "log"), settings)
        try:
            with httpx.Client(base_url=url, timeout=ANSWER_SECONDS) as client:
                yield client
        finally:
            stop_server(process)


def score(client: httpx.Client, task: str, code: str) -> dict[str, Any]:
    body = {"task_id": task, "code": code, "wait_seconds": ANSWER_SECONDS}
    answer = client.post("/score", json=body)
    assert answer.status_code == 200, answer.text
    content: dict[str, Any] = answer.json()
    return content


def score_at_once(
    client: httpx.Client, programs: Iterable[tuple[str, str]]
) -> list[dict[str, Any]]:
    with ThreadPoolExecutor(16) as pool:
        return list(pool.map(lambda program: score(client, *program), programs))
