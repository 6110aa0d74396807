"""veRL's reward function against the real server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.support.job_client import TASK
from trainer_client import AsyncRewardClient, InfrastructureError, RequestRefusedError
from trainer_client.integrations.verl.reward import compute_score

if TYPE_CHECKING:
    from tests.conftest import RunningServer

PROGRAM = f"""A plan.
```python
import pandas as pd
sample = pd.read_csv("/workdir/{TASK}/prepared/public/sample_submission.csv")
sample.to_csv("submission.csv", index=False)
```
"""


def node(url: str, **more: object) -> dict[str, object]:
    return {"url": url, "tasks": [TASK], "run_id": "reward-function", **more}


async def test_every_sample_has_the_same_keys(server: RunningServer) -> None:
    texts = [PROGRAM, "no code", "```python\nraise ValueError\n```", PROGRAM]
    found = await asyncio.gather(
        *(compute_score(TASK, text, "", {"x": 1}, reward_server=node(server.url)) for text in texts)
    )
    assert len({tuple(one) for one in found}) == 1
    assert [one["valid"] for one in found] == [1, 0, 0, 1]
    assert all(isinstance(one["score"], float) for one in found)
    assert found[1]["score"] == -10
    assert float(found[0]["duration_seconds"]) > 0


async def test_the_parent_of_a_sample_is_kept(server: RunningServer) -> None:
    settings = node(server.url)
    parent = await compute_score(TASK, PROGRAM, reward_server=settings)
    extra_info = {"parent_id": parent["solution_id"], "prompt_kind": "improve"}
    child = await compute_score(TASK, PROGRAM, extra_info=extra_info, reward_server=settings)
    assert (parent["improvement"], child["improvement"]) == (0, 1)
    async with AsyncRewardClient(server.url) as client:
        stored = await client.get(f"/v1/solutions/{child['solution_id']}")
    assert stored["parent_id"] == parent["solution_id"]


async def test_a_server_that_is_away_is_no_number() -> None:
    gone = node("http://127.0.0.1:9", outage_seconds=0, deadline_seconds=5)
    with pytest.raises(InfrastructureError):
        await compute_score(TASK, PROGRAM, reward_server=gone)


async def test_an_unknown_task_is_no_number(server: RunningServer) -> None:
    with pytest.raises(RequestRefusedError):
        await compute_score("no-such-task", PROGRAM, reward_server=node(server.url))
