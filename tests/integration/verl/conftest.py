"""Real training by veRL on the CPU, with a real reward server; see `make test-trainers`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.conftest import RunningServer, start_server, stop_server
from tests.integration.verl.training import TASK

if TYPE_CHECKING:
    from collections.abc import Iterator

# Programs of this lane nap rather than compute, so more may run than there are cores.
NAPPING = {"REWARD_SERVER_SANDBOX__SLOTS": "12"}
LONG_NAP_SECONDS = 45


def nap(seconds: float, tilt: float = 0.0) -> str:
    """Return an answer whose program takes so long and hands in something of its own."""
    return f"""A nap of {seconds} s first.
```python
import time
import pandas as pd

folder = "/workdir/{TASK}/prepared/public"
train = pd.read_csv(f"{{folder}}/train.csv")
sample = pd.read_csv(f"{{folder}}/sample_submission.csv")
time.sleep({seconds})
authors = ["EAP", "HPL", "MWS"]
sample["EAP"] += {tilt}
sample[authors] = sample[authors].div(sample[authors].sum(axis=1), axis=0)
sample.to_csv("submission.csv", index=False)
```
"""


CRASH = "A mistake.\n```python\nimport pandas\nraise SystemExit(1)\n```\n"
NO_CODE = "There is no program in this answer.\n"
BOOK = (NO_CODE, CRASH, nap(0.1), nap(0.3, 0.2), nap(0.6, 0.4), nap(0.9, 0.1), nap(0.5, 0.3))
# One answer of eight takes longer than a trainer should wait.
STRAGGLING_BOOK = (*BOOK[1:], nap(0.2, 0.05), nap(LONG_NAP_SECONDS))


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


def _models(answers: tuple[str, ...]) -> Iterator[Path]:
    from trainer_client.integrations.verl.phrases import make  # noqa: PLC0415  # imports torch

    with tempfile.TemporaryDirectory(prefix="reward-server-verl-") as name:
        make(Path(name), answers)
        yield Path(name)


@pytest.fixture(scope="session")
def models() -> Iterator[Path]:
    yield from _models(BOOK)


@pytest.fixture(scope="session")
def straggling_models() -> Iterator[Path]:
    yield from _models(STRAGGLING_BOOK)
