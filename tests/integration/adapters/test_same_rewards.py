"""The same sixty-four answers get the same rewards through every integration."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest
import skyrl_gym
from areal.workflow.rlvr import RLVRWorkflow
from skyrl_gym.envs.registration import deregister, register
from verifiers.v1.utils.loaders import load_environment

from tests.integration.adapters.completions import COMPLETIONS
from tests.integration.adapters.policy import serving_policy
from tests.integration.adapters.test_areal_module import GCONFIG, ROW, ArealLetters, FakeEngine
from tests.integration.adapters.test_openrlhf_client import roll_out as roll_out_openrlhf
from tests.integration.adapters.test_verifiers_module import configure
from tests.integration.adapters.test_verifiers_module import roll_out as roll_out_verifiers
from tests.support.adapter_requests import INTEGRATIONS
from tests.support.job_client import TASK
from trainer_client import AsyncRewardClient, RewardClient, Submission
from trainer_client.integrations.areal import RewardServerWorkflow
from trainer_client.integrations.trl.reward import make_async_reward, make_reward
from trainer_client.integrations.verl.reward import compute_score
from trainer_client.run import RUN_ID, URL, Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.conftest import RunningServer

    Rewards = list[float]
    Integration = Callable[[str, str], Rewards]

_AT_ONCE = 8


def _each(score: Callable[[str], float]) -> Rewards:
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        return list(threads.map(score, COMPLETIONS))


def plain(url: str, run_id: str) -> Rewards:
    """`POST /score`, which all others are compared with."""
    with httpx.Client(base_url=url, timeout=120) as http:

        def score(completion: str) -> float:
            body = {"task_id": TASK, "completion": completion, "run_id": run_id}
            reward: float = http.post("/score", json=body).raise_for_status().json()["reward"]
            return reward

        return _each(score)


def batch(url: str, run_id: str) -> Rewards:
    items = [{"task_id": TASK, "completion": one, "run_id": run_id} for one in COMPLETIONS]
    posted = httpx.post(f"{url}/score/batch", json={"items": items}, timeout=300)
    lines = [json.loads(line) for line in posted.raise_for_status().text.split("\n") if line]
    found = {line["index"]: line["reward"] for line in lines}
    return [found[index] for index in range(len(COMPLETIONS))]


def _submissions(run_id: str) -> Iterable[Submission]:
    return [Submission(TASK, completion=one, run_id=run_id) for one in COMPLETIONS]


def client(url: str, run_id: str) -> Rewards:
    with RewardClient(url) as server:
        results = {one.index: one.answer for one in server.score_many(_submissions(run_id))}
    answers = [results[index] for index in range(len(COMPLETIONS))]
    return [answer.reward for answer in answers if answer is not None]


def async_client(url: str, run_id: str) -> Rewards:
    async def score() -> Rewards:
        async with AsyncRewardClient(url) as server:
            calls = [server.score(**one.body()) for one in _submissions(run_id)]
            return [answer.reward for answer in await asyncio.gather(*calls)]

    return asyncio.run(score())


def recorded(name: str, url: str, run_id: str) -> Rewards:
    """Adapters with their own formats, called with the requests that their trainers send."""
    with httpx.Client(base_url=url, timeout=120, params={"run_id": run_id}) as http:
        return _each(lambda completion: INTEGRATIONS[name](http, completion, TASK))


def openrlhf(url: str, run_id: str) -> Rewards:
    address = f"{url}/adapters/openrlhf/get_reward?run_id={run_id}"
    return _each(lambda completion: roll_out_openrlhf(address, completion)["reward"][0])


def trl(url: str, run_id: str) -> Rewards:
    rewards = make_reward(Run(url, run_id))([], COMPLETIONS, task_id=[TASK] * len(COMPLETIONS))
    return [reward for reward in rewards if reward is not None]


def trl_async(url: str, run_id: str) -> Rewards:
    function = make_async_reward(Run(url, run_id))
    rewards = asyncio.run(function([], COMPLETIONS, task_id=[TASK] * len(COMPLETIONS)))
    return [reward for reward in rewards if reward is not None]


def verl(url: str, run_id: str) -> Rewards:
    node = {"url": url, "tasks": [TASK], "run_id": run_id}

    async def score() -> Rewards:
        calls = [compute_score(TASK, one, reward_server=node) for one in COMPLETIONS]
        return [float(found["score"]) for found in await asyncio.gather(*calls)]

    return asyncio.run(score())


def verifiers(url: str, run_id: str) -> Rewards:
    async def score() -> Rewards:
        env = load_environment(configure({"url": url, "tasks": [TASK], "run_id": run_id}))
        task = next(iter(env.taskset))
        named = {str(index): text for index, text in enumerate(COMPLETIONS)}
        with serving_policy(named) as policy:
            episodes = [await roll_out_verifiers(env, task, name, policy) for name in named]
        assert all(episode.ok for episode in episodes)
        return [episode.traces[0].reward for episode in episodes]

    return asyncio.run(score())


def skyrl(url: str, run_id: str) -> Rewards:
    entry = "trainer_client.integrations.skyrl:RewardServerEnv"
    register(id="same", entry_point=entry, kwargs={"url": url, "run_id": run_id})
    row = {"env_config": {}, "extras": {"task_id": TASK}}
    try:
        return _each(lambda one: skyrl_gym.make("same", **row).step(one)["reward"])
    finally:
        deregister("same")


def _trajectories(workflow: RLVRWorkflow) -> Rewards:
    async def score() -> Rewards:
        calls = [workflow.arun_episode(FakeEngine(one), ROW) for one in COMPLETIONS]
        return [float(one["rewards"]) for one in await asyncio.gather(*calls)]

    return asyncio.run(score())


def areal(url: str, run_id: str) -> Rewards:
    return _trajectories(RewardServerWorkflow(GCONFIG, ArealLetters(), url=url, run_id=run_id))


def areal_function(url: str, run_id: str) -> Rewards:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(URL, url)
        environment.setenv(RUN_ID, run_id)
        return _trajectories(
            RLVRWorkflow("trainer_client.integrations.areal.reward_fn", GCONFIG, ArealLetters())
        )


_TRAINERS: tuple[Integration, ...] = (
    batch,
    client,
    async_client,
    openrlhf,
    trl,
    trl_async,
    verl,
    verifiers,
    skyrl,
    areal,
    areal_function,
)
_INTEGRATIONS: dict[str, Integration] = {
    **{integration.__name__: integration for integration in _TRAINERS},
    **{f"{name} as recorded": partial(recorded, name) for name in INTEGRATIONS},
}


@pytest.fixture(scope="module")
def expected(server: RunningServer) -> Rewards:
    return plain(server.url, "plain")


def test_the_answers_are_of_different_worth(expected: Rewards) -> None:
    assert len(expected) == 64
    assert sum(reward > -9 for reward in expected) > 30
    assert sum(-10 < reward <= -9 for reward in expected) >= 5
    assert Counter(expected)[-10.0] >= 10
    assert len(set(expected)) > 40


@pytest.mark.parametrize("name", sorted(_INTEGRATIONS))
def test_every_integration_returns_the_same_rewards(
    name: str, server: RunningServer, expected: Rewards, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))  # verifiers looks for modules by name
    rewards = _INTEGRATIONS[name](server.url, f"same-{name.replace(' ', '-')}")
    assert rewards == pytest.approx(expected, rel=1e-6)  # AReaL's are of single precision
