"""OpenRLHF's own rollout and reward client against the server."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import aiohttp
import httpx
from openrlhf.utils import agent

from tests.support.job_client import TASK

if TYPE_CHECKING:
    import pytest

    from tests.conftest import RunningServer

PROMPT = "<|im_start|>user\nImprove on ```python\nraise SystemExit\n```<|im_end|>\n"
COPY = (
    "A copy.\n```python\nimport shutil\n"
    f'shutil.copy("/workdir/{TASK}/prepared/public/sample_submission.csv", "submission.csv")\n'
    "```"
)
SLOW = "A nap.\n```python\nimport time\ntime.sleep(4)\n```"


class OpenRlhfLetters:
    """A tokenizer whose tokens are letters."""

    def __call__(self, text: str, **_: object) -> dict[str, Any]:
        return {"input_ids": [SimpleNamespace(tolist=lambda: [ord(letter) for letter in text])]}

    def decode(self, tokens: list[int], *, skip_special_tokens: bool) -> str:
        assert not skip_special_tokens
        return "".join(map(chr, tokens))


class LetterPolicy:
    """An engine that always writes the same, and then the end of a turn."""

    def __init__(self, text: str) -> None:
        self._tokens = [ord(letter) for letter in f"{text}<|im_end|>"]

    async def generate(self, *_: object, **__: object) -> SimpleNamespace:
        written = SimpleNamespace(token_ids=self._tokens, finish_reason="stop", logprobs=None)
        return SimpleNamespace(outputs=[written])


def roll_out(url: str, text: str, label: str = TASK) -> dict[str, Any]:
    executor = agent.SingleTurnAgentExecutor(url)
    sampling = SimpleNamespace(max_tokens=4096, logprobs=None)
    done: dict[str, Any] = asyncio.run(
        executor.execute(PROMPT, label, sampling, 8192, OpenRlhfLetters(), LetterPolicy(text))
    )
    return done


def address(server: RunningServer, run_id: str) -> str:
    return f"{server.url}/adapters/openrlhf/get_reward?run_id={run_id}"


def test_a_rollout_of_openrlhf_gets_its_reward_and_logs(server: RunningServer) -> None:
    done = roll_out(address(server, "openrlhf-1"), COPY)
    body = {"task_id": TASK, "completion": COPY}
    plain = httpx.post(f"{server.url}/score", json=body, timeout=60).json()
    assert done["reward"] == done["scores"] == [plain["reward"]]
    assert done["extra_logs"]["valid"] == [1.0]
    assert done["extra_logs"]["duration_seconds"][0] > 0


def test_blind_retries_join_the_running_job(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[object] = []
    post, timeout = aiohttp.ClientSession.post, aiohttp.ClientTimeout

    def count(*args: object, **fields: object) -> object:
        sent.append(args)
        return post(*args, **fields)

    monkeypatch.setattr(aiohttp.ClientSession, "post", count)
    monkeypatch.setattr(agent.aiohttp, "ClientTimeout", lambda total: timeout(total / 180))
    done = roll_out(address(server, "openrlhf-2"), SLOW)
    assert len(sent) > 1
    assert done["reward"] == [-10.0]
    assert done["extra_logs"]["duration_seconds"][0] >= 4
    listed = httpx.get(f"{server.url}/v1/solutions", params={"run_id": "openrlhf-2"}).json()
    assert len(listed["solutions"]) == 1


def test_no_reward_is_none_and_not_zero(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    pause = asyncio.sleep
    monkeypatch.setattr(agent.asyncio, "sleep", lambda _: pause(0))
    done = roll_out(address(server, "openrlhf-3"), COPY, "no-such-task")
    assert done["reward"] is None
    assert done["scores"] is None
