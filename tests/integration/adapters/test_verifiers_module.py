"""Rollouts by verifiers itself: its loaders, environment, runtime, interception and scoring."""

from __future__ import annotations

import asyncio
import tomllib
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import verifiers.v1 as vf
from verifiers.v1.serve import EnvClient, EnvServer
from verifiers.v1.utils.loaders import load_environment, load_taskset, resolve_env_config

from tests.conftest import ROOT, wait_until
from tests.integration.adapters.conftest import GONE, agree, stored
from tests.integration.adapters.policy import serving_policy
from tests.integration.adapters.programs import ENDLESS, LONG_NAP, PROGRAMS
from tests.support.job_client import TASK, JobClient
from trainer_client.integrations.verifiers import RewardServerTask

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    import httpx

    from tests.conftest import RunningServer


@pytest.fixture(autouse=True)
def _modules_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


@pytest.fixture(scope="module")
def policy() -> Iterator[str]:
    with serving_policy({**PROGRAMS, "endless": ENDLESS}) as url:
        yield url


def configure(node: dict[str, Any], **agent: object) -> vf.EnvConfig:
    return resolve_env_config(
        {
            "taskset": {"id": "mle-tasks", "task": {"reward_server": node}},
            "agent": {
                "harness": {"id": "one-turn"},
                "runtime": {"type": "subprocess"},
                **agent,
            },
        }
    )


@pytest.fixture
def node(server: RunningServer, run_id: str) -> dict[str, Any]:
    return {"url": server.url, "tasks": [TASK], "run_id": run_id}


async def roll_out(env: vf.Env, task: vf.Task, name: str, policy: str) -> vf.Episode:
    """Have verifiers play one episode with the policy of that name."""
    client = vf.EvalClientConfig(base_url=policy, api_key_var="NO_KEY")
    async with env.serving():
        [slot] = env.slots(task)
        return await env.run_slot(slot, vf.ModelContext(model=name, client=client))


async def test_a_rollout_has_the_reward_and_what_was_measured(
    named: str, node: dict[str, Any], policy: str, plain: dict[str, Any]
) -> None:
    env = load_environment(configure(node))
    task = next(iter(env.taskset))
    episode = await roll_out(env, task, named, policy)
    [trace] = episode.traces
    assert episode.ok, trace.errors
    assert trace.last_reply == PROGRAMS[named]
    assert trace.reward == plain[named]["reward"]
    agree(trace.metrics, plain[named])


async def test_a_rollout_without_a_reward_is_an_error(node: dict[str, Any], policy: str) -> None:
    task = next(iter(load_environment(configure(node)).taskset))
    env = load_environment(configure({**node, **GONE}))
    gone = RewardServerTask(task.data, env.config.taskset.task)
    episode = await roll_out(env, gone, "valid", policy)
    [trace] = episode.traces
    assert not episode.ok
    assert trace.has_error
    assert trace.last_error.type == "TaskError"
    assert "does not answer" in trace.last_error.message
    assert trace.rewards == {}
    assert trace.metrics == {}


async def test_a_deadline_of_verifiers_makes_no_number_either(
    node: dict[str, Any], policy: str
) -> None:
    env = load_environment(configure(node, timeout={"finalize": 0.001}))
    [trace] = (await roll_out(env, next(iter(env.taskset)), "crash", policy)).traces
    assert trace.has_error
    assert trace.rewards == {"reward": None}


def test_what_the_documentation_says_is_a_configuration() -> None:
    text = (ROOT / "docs/trainers.md").read_text().partition("```toml\n")[2].partition("```")[0]
    [source] = tomllib.loads(text)["orchestrator"]["train"]["source"]
    env = load_environment(resolve_env_config(source["env"]))
    settings = env.config.taskset.task.reward_server
    assert (settings.tasks, settings.run_id) == ((TASK,), "spooky-1")
    assert settings.prompts.strategy == "best"
    assert env.config.agent.harness.id == "null"


async def test_prompts_are_fetched_when_they_are_needed(
    node: dict[str, Any], policy: str, http: httpx.Client, run_id: str
) -> None:
    env = load_environment(configure({**node, "prompts": {"improve_fraction": 1}}))
    tasks = iter(env.taskset)
    first = next(tasks)
    assert first.data.parent_id is None
    assert "submission.csv" in first.data.system_prompt
    await roll_out(env, first, "valid", policy)
    [parent] = stored(http, run_id)
    second = next(tasks)
    assert second.data.parent_id == parent["solution_id"]
    assert "shutil.copy" in second.data.prompt
    await roll_out(env, second, "valid", policy)
    lineage = {one["solution_id"]: one["parent_id"] for one in stored(http, run_id)}
    assert list(lineage.values()).count(parent["solution_id"]) == 1


@asynccontextmanager
async def environment_server(config: vf.EnvConfig) -> AsyncIterator[EnvClient]:
    """Serve rollouts as prime-rl has them served."""
    env_server = EnvServer(config, "tcp://127.0.0.1:0")
    running = asyncio.create_task(env_server.run())
    client = EnvClient(env_server.address)
    try:
        await client.wait_for_server_startup(timeout=60)
        yield client
    finally:
        await client.close()
        running.cancel()
        await asyncio.wait({running})


def request(config: vf.EnvConfig, name: str, policy: str) -> dict[str, Any]:
    """Return what prime-rl's orchestrator sends for a task that it has drawn."""
    task = next(iter(load_taskset(config.taskset)))
    return {
        "task_data": task.data.model_dump(mode="json", exclude_none=True),
        "client": vf.EvalClientConfig(base_url=policy, api_key_var="NO_KEY"),
        "model": name,
        "sampling": vf.SamplingConfig(),
    }


async def test_prime_rl_gets_reward_and_measures_from_an_environment_server(
    node: dict[str, Any], policy: str, plain: dict[str, Any]
) -> None:
    config = configure(node)
    async with environment_server(config) as client:
        episode = await client.run(**request(config, "crash", policy))
    [trace] = episode.traces
    assert episode.ok
    assert trace.reward == plain["crash"]["reward"]
    agree(trace.metrics, plain["crash"])


async def test_prime_rl_gets_an_error_for_a_lost_sample(node: dict[str, Any], policy: str) -> None:
    asked = request(configure(node), "valid", policy)
    async with environment_server(configure({**node, **GONE})) as client:
        episode = await client.run(**asked)
    [trace] = episode.traces
    assert not episode.ok
    assert trace.has_error
    assert not trace.rewards


async def test_a_rollout_that_prime_rl_cancels_ends_its_program(
    node: dict[str, Any], policy: str, server: RunningServer
) -> None:
    config = configure(node)
    with JobClient(server.url, "", server.pid) as jobs:
        async with environment_server(config) as client:
            run = asyncio.create_task(client.run(**request(config, "endless", policy)))
            await asyncio.to_thread(jobs.wait_for_program, LONG_NAP)
            run.cancel()
            await asyncio.to_thread(wait_until, lambda: not jobs.runs(LONG_NAP))
            await asyncio.wait({run})


@pytest.mark.parametrize(
    ("change", "message"),
    [({"tasks": ["no-such-task"]}, "no-such-task"), ({"adress": "x"}, "adress")],
)
def test_a_mistake_is_reported_before_generation(
    change: dict[str, Any], message: str, node: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match=message):
        next(iter(load_environment(configure({**node, **change})).taskset))


def test_a_configuration_without_a_server_is_refused() -> None:
    env = load_environment(resolve_env_config({"taskset": {"id": "mle-tasks"}}))
    with pytest.raises(ValueError, match="where is the reward server"):
        next(iter(env.taskset))
