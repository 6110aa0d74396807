"""SkyRL's environments, made by its own registry."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
import skyrl_gym
from skyrl_gym.envs.registration import deregister, register
from skyrl_gym.metrics import aggregate_for_environment

from tests.integration.adapters.conftest import GONE, agree, stored
from tests.integration.adapters.programs import PROGRAMS, VALID, nap
from tests.support.job_client import TASK
from trainer_client import InfrastructureError
from trainer_client.integrations.skyrl import RewardServerEnv

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from tests.conftest import RunningServer

ENV = "reward-server"
PROMPT = [{"role": "user", "content": "Write a program."}]


@pytest.fixture
def registered(server: RunningServer, run_id: str) -> Iterator[None]:
    register(
        id=ENV,
        entry_point="trainer_client.integrations.skyrl:RewardServerEnv",
        kwargs={"url": server.url, "run_id": run_id},
    )
    yield
    deregister(ENV)


def step(action: str, **extras: object) -> tuple[Any, Any]:
    """Do what SkyRL's generator does with one answer."""
    env = skyrl_gym.make(ENV, env_config={}, extras={"task_id": TASK, "max_turns": 1, **extras})
    prompt, _ = env.init(PROMPT)
    assert prompt == PROMPT
    return env, env.step(action)


@pytest.mark.usefixtures("registered")
def test_a_step_has_the_reward_and_ends(named: str, plain: dict[str, Any]) -> None:
    env, output = step(PROGRAMS[named])
    assert output["reward"] == plain[named]["reward"]
    assert output["done"] is True
    assert output["observations"] == []
    agree(output["metadata"], plain[named])
    assert env.get_metrics() == output["metadata"]
    env.close()


@pytest.mark.usefixtures("registered")
def test_skyrl_logs_the_means_of_what_was_measured() -> None:
    env, _ = step(VALID)
    other, _ = step(PROGRAMS["no_code"])
    means = aggregate_for_environment(ENV, [env.get_metrics(), other.get_metrics()])
    assert means["valid"] == 0.5
    assert means["duration_seconds"] > 0
    assert "solution_id" not in means


@pytest.mark.usefixtures("registered")
def test_the_parent_of_a_row_is_kept(http: httpx.Client, run_id: str) -> None:
    _, parent = step(VALID)
    _, child = step(VALID, parent_id=parent["metadata"]["solution_id"])
    assert (parent["metadata"]["improvement"], child["metadata"]["improvement"]) == (0, 1)
    kept = http.get(f"/v1/solutions/{child['metadata']['solution_id']}").json()
    assert kept["parent_id"] == parent["metadata"]["solution_id"]
    assert len(stored(http, run_id)) == 2


@pytest.mark.usefixtures("registered")
def test_many_threads_share_one_client(http: httpx.Client, run_id: str) -> None:
    with ThreadPoolExecutor(8) as threads:
        outputs = [output for _, output in threads.map(step, [nap(0.1)] * 8)]
    assert [output["reward"] for output in outputs] == [-10.0] * 8
    assert len(stored(http, run_id)) == 8
    clients = {id(one._run.shared_client()) for one, _ in [step(VALID), step(VALID)]}
    assert len(clients) == 1


@pytest.mark.usefixtures("environment")
def test_the_environment_names_server_and_run(http: httpx.Client, run_id: str) -> None:
    RewardServerEnv(extras={"task_id": TASK}).step(VALID)
    assert len(stored(http, run_id)) == 1


def test_a_lower_time_limit_is_kept(server: RunningServer, run_id: str) -> None:
    row = {"task_id": TASK}
    env = RewardServerEnv(extras=row, url=server.url, run_id=run_id, wall_seconds=1)
    output = env.step(nap(60))
    assert (output["reward"], output["metadata"]["timed_out"]) == (-10.0, 1.0)
    assert output["metadata"]["duration_seconds"] >= 1


def test_no_reward_is_an_exception_and_not_a_number() -> None:
    register(
        id="gone", entry_point="trainer_client.integrations.skyrl:RewardServerEnv", kwargs=GONE
    )
    try:
        env = skyrl_gym.make("gone", env_config={}, extras={"task_id": TASK})
        with pytest.raises(InfrastructureError):
            env.step(VALID)
        assert env.get_metrics() == {}
    finally:
        deregister("gone")


@pytest.mark.usefixtures("registered")
def test_a_row_without_a_task_fails_before_generation() -> None:
    with pytest.raises(ValueError, match="names no task_id"):
        skyrl_gym.make(ENV, env_config={}, extras={"prompt": "x"})
