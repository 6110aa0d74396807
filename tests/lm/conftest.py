"""A real vLLM, started by `.ci/lm` with the model from a wheel; `make test-lm` runs all of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.conftest import LM_PID, LM_URL

if TYPE_CHECKING:
    from collections.abc import Iterator

if LM_URL is None or not LM_PID:
    message = "tests/lm need the vLLM of `make test-lm`"
    raise pytest.UsageError(message)

MODEL = "SmolLM2-135M-Instruct"
ANSWER_SECONDS = 300


@pytest.fixture(scope="session")
def lm() -> Iterator[httpx.Client]:
    with httpx.Client(base_url=LM_URL or "", timeout=ANSWER_SECONDS) as client:
        yield client


def questions_answered(lm: httpx.Client) -> int:
    """Return how many requests this vLLM has finished since it started."""
    lines = lm.get("/metrics").text.splitlines()
    counts = [line for line in lines if line.startswith("vllm:request_success_total")]
    return round(sum(float(re.split(r"\s+", line)[-1]) for line in counts))
