"""The language model fails while programs are in flight: each still gets its reward."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.conftest import LM_PID
from tests.integration.lm.conftest import (
    BY_LM,
    counted,
    questions_answered,
    score,
    score_at_once,
    serving,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

TASK = "spooky-author-identification"
# Long enough for a reply of this model, short enough for a test to wait out.
PATIENCE = {**BY_LM, "REWARD_SERVER_INSTRUMENT__LM_DEADLINE_SECONDS": "60"}
FAILURES_UNTIL_NOBODY_WAITS = 5


def program(name: str) -> tuple[str, str]:
    """Return a unique program, so that no cached placement exists for it."""
    return TASK, (
        "import pandas as pd\n"
        f'data = "/workdir/{TASK}/prepared/public"\n'
        'sample = pd.read_csv(f"{data}/sample_submission.csv")\n'
        'sample.to_csv("submission.csv", index=False)\n'
        f'print("{name}")\n'
    )


def wait_until(holds: Callable[[], bool], seconds: float = 240) -> None:
    ends = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < ends, "it did not come about"
        time.sleep(0.2)


@contextmanager
def stopped_lm() -> Iterator[None]:
    os.killpg(LM_PID, signal.SIGSTOP)
    try:
        yield
    finally:
        os.killpg(LM_PID, signal.SIGCONT)


def test_a_paused_model_is_bypassed_and_used_again_when_it_resumes(
    lm: httpx.Client, data_dir: Path
) -> None:
    with serving(data_dir, PATIENCE) as client:
        with stopped_lm():
            names = [f"waits {number}" for number in range(FAILURES_UNTIL_NOBODY_WAITS)]
            waited = score_at_once(client, [program(name) for name in names])
            turned_away = score(client, *program("does not wait"))
            assert client.get("/readyz").json()["lm"]["ready"] is False
        for answer, name in zip([*waited, turned_away], [*names, "does not wait"], strict=True):
            assert answer["valid"] is True
            assert answer["stdout_tail"] == f"{name}\n"
            assert answer["instrumentation"]["kind"] == "static"
        late, down = "the language model did not answer in time", "the language model is down"
        reasons = [answer["instrumentation"]["reason"] for answer in waited]
        # A program whose request still waits in the queue finds the model down at its turn.
        assert late in reasons
        assert set(reasons) <= {late, down}
        assert turned_away["instrumentation"]["reason"] == down

        wait_until(lambda: client.get("/readyz").json()["lm"]["ready"])
        before = questions_answered(lm)
        used_again = score(client, *program("goes on"))
        assert questions_answered(lm) == before + 1
        assert used_again["valid"] is True
        reason = used_again["instrumentation"]["reason"]
        assert reason not in {late, "the language model is down"}


@pytest.mark.ends_the_lm
def test_a_killed_model_costs_no_program_its_reward(lm: httpx.Client, data_dir: Path) -> None:
    with serving(data_dir, BY_LM) as client, ThreadPoolExecutor(4) as pool:
        names = [f"under way {number}" for number in range(3)]
        asked = [pool.submit(score, client, *program(name)) for name in names]
        wait_until(lambda: counted(lm, "vllm:num_requests_running") > 0)
        os.killpg(LM_PID, signal.SIGKILL)
        answers = [*(future.result() for future in asked), score(client, *program("after"))]
    for answer in answers:
        assert answer["valid"] is True
        assert answer["instrumentation"]["kind"] == "static"
        assert "the language model" in answer["instrumentation"]["reason"]
    with pytest.raises(httpx.TransportError):
        lm.get("/health")
