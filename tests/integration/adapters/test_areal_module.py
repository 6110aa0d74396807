"""AReaL's reward wrapper, workflows and executor with ours in them."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import torch
from areal import workflow_context
from areal.api import AsyncRewardWrapper, ModelResponse
from areal.api.cli_args import (
    GenerationHyperparameters,
    InferenceEngineConfig,
    PPOActorConfig,
)
from areal.infra import WorkflowExecutor
from areal.infra.remote_inf_engine import GroupedRolloutWorkflow
from areal.utils import logging as areal_logging
from areal.utils import stats_tracker
from areal.workflow.rlvr import RLVRWorkflow

from tests.integration.adapters.conftest import GONE, agree, stored
from tests.integration.adapters.programs import PROGRAMS, VALID, nap
from tests.support.job_client import TASK
from trainer_client import DeadlineExceededError, RequestRefusedError, SampleLostError
from trainer_client.integrations import areal
from trainer_client.integrations.areal import RewardServerWorkflow
from trainer_client.integrations.areal_durations import weigh_advantages
from trainer_client.run import URL

if TYPE_CHECKING:
    import httpx

    from tests.conftest import RunningServer

GCONFIG = GenerationHyperparameters()
ROW = {"messages": [{"role": "user", "content": "Write a program."}], "task_id": TASK}
END = 0x10FFFF
TOO_LARGE = "x" * (2 << 20)


class ArealLetters:
    """A tokenizer whose tokens are letters, but for the end of a turn."""

    pad_token_id = eos_token_id = END

    def apply_chat_template(self, messages: list[dict[str, str]], **_: object) -> dict[str, Any]:
        letters = [letter for message in messages for letter in message["content"]]
        return {"input_ids": list(map(ord, letters))}

    def decode(self, tokens: list[int], *, skip_special_tokens: bool = False) -> str:
        end = "" if skip_special_tokens else "<|im_end|>"
        return "".join(end if token == END else chr(token) for token in tokens)


class FakeEngine:
    """An engine that writes one text after the other, each with its end of turn."""

    def __init__(self, *texts: str) -> None:
        self._texts = list(texts)

    def get_version(self) -> int:
        return 0

    async def agenerate(self, request: Any) -> ModelResponse:
        text = self._texts.pop(0) if len(self._texts) > 1 else self._texts[0]
        tokens = [*map(ord, text), END]
        zeros = [0] * len(tokens)
        return ModelResponse(
            input_tokens=request.input_ids,
            output_tokens=tokens,
            output_logprobs=[0.0] * len(tokens),
            output_versions=zeros,
        )


@pytest.fixture
def workflow(server: RunningServer, run_id: str) -> RewardServerWorkflow:
    return RewardServerWorkflow(GCONFIG, ArealLetters(), url=server.url, run_id=run_id)


@pytest.fixture
def gone(run_id: str) -> RewardServerWorkflow:
    return RewardServerWorkflow(GCONFIG, ArealLetters(), run_id=run_id, **GONE)


@pytest.fixture(autouse=True)
def _fresh_statistics() -> None:
    stats_tracker.get("rollout").export()


async def test_a_trajectory_has_reward_and_duration(
    named: str, workflow: RewardServerWorkflow, plain: dict[str, Any]
) -> None:
    trajectory = await workflow.arun_episode(FakeEngine(PROGRAMS[named]), ROW)
    assert trajectory is not None
    assert trajectory["rewards"].tolist() == pytest.approx([plain[named]["reward"]])
    assert trajectory["loss_mask"].sum() == len(PROGRAMS[named]) + 1
    logged = stats_tracker.get("rollout").export()
    measures = {name.removeprefix("rollout/"): value for name, value in logged.items()}
    agree(measures, plain[named])
    assert trajectory["duration_seconds"].tolist() == pytest.approx([measures["duration_seconds"]])


async def test_a_sample_without_a_reward_is_left_out(gone: RewardServerWorkflow) -> None:
    assert await gone.arun_episode(FakeEngine(VALID), ROW) is None


async def test_a_wrong_row_is_no_lost_sample(
    workflow: RewardServerWorkflow,
) -> None:
    with pytest.raises(RequestRefusedError):
        await workflow.arun_episode(FakeEngine(VALID), {**ROW, "task_id": "no-such-task"})
    with pytest.raises(ValueError, match="names no task_id"):
        await workflow.arun_episode(FakeEngine(VALID), {"messages": ROW["messages"]})


async def test_areals_group_continues_without_a_lost_sample(
    workflow: RewardServerWorkflow,
) -> None:
    grouped = GroupedRolloutWorkflow(workflow, 3, areal_logging.getLogger("test"))
    group = await grouped.arun_episode(FakeEngine(VALID, TOO_LARGE, PROGRAMS["no_code"]), ROW)
    assert group is not None
    assert group["rewards"].shape == group["duration_seconds"].shape == (2,)
    assert -10.0 in group["rewards"].tolist()


async def test_the_parent_of_a_row_is_kept(
    workflow: RewardServerWorkflow, http: httpx.Client, run_id: str
) -> None:
    await workflow.arun_episode(FakeEngine(VALID), ROW)
    [parent] = stored(http, run_id)
    await workflow.arun_episode(FakeEngine(VALID), {**ROW, "parent_id": parent["solution_id"]})
    kept = {one["solution_id"]: one["parent_id"] for one in stored(http, run_id)}
    assert sorted(kept.values(), key=str) == sorted([None, parent["solution_id"]], key=str)


def test_areals_executor_takes_what_has_a_reward_and_rejects_the_rest(
    workflow: RewardServerWorkflow, gone: RewardServerWorkflow, plain: dict[str, Any]
) -> None:
    config = InferenceEngineConfig(
        consumer_batch_size=2, max_head_offpolicyness=9, check_trajectory_format=True
    )
    executor = WorkflowExecutor(config, FakeEngine(VALID))
    executor.initialize(train_data_parallel_size=1)
    try:
        executor.submit(ROW, gone)
        for _ in range(2):
            executor.submit(ROW, workflow)
        batch = executor.wait(3, timeout=120)
        statistics = executor.staleness_manager.get_stats()
    finally:
        executor.destroy()
    rewards = [float(one["rewards"]) for one in batch if one is not None]
    assert rewards == pytest.approx([plain["valid"]["reward"]] * 2)
    assert (statistics.accepted, statistics.rejected) == (2, 1)


@pytest.fixture
def actor(monkeypatch: pytest.MonkeyPatch) -> Any:
    """AReaL's actor, without the rest of its package, which wants engines that are not here."""
    for name in ("trainer", "trainer.ppo"):
        package = ModuleType(f"areal.{name}")
        package.__path__ = [
            str(Path(workflow_context.__file__).parents[1] / name.replace(".", "/"))
        ]
        monkeypatch.setitem(sys.modules, f"areal.{name}", package)
    module = importlib.import_module("areal.trainer.ppo.actor")
    return module.PPOActor(PPOActorConfig(kl_ctl=0.0), SimpleNamespace())


async def test_durations_reach_the_advantages_of_areals_actor(
    workflow: RewardServerWorkflow, actor: Any
) -> None:
    def compute(batch: list[dict[str, Any]]) -> list[dict[str, Any]]:
        advantages: list[dict[str, Any]] = actor.compute_advantages([dict(one) for one in batch])
        return advantages

    grouped = GroupedRolloutWorkflow(workflow, 2, areal_logging.getLogger("test"))
    groups = [
        await grouped.arun_episode(FakeEngine(nap(0.1), nap(0.4)), ROW),
        await grouped.arun_episode(FakeEngine(VALID, PROGRAMS["no_code"]), ROW),
    ]
    plainly, weighed = compute(groups), weigh_advantages(compute(groups))
    seconds = torch.cat([one["duration_seconds"] for one in groups])
    weights = (seconds / seconds.mean()).split(2)
    for before, after, weight in zip(plainly, weighed, weights, strict=True):
        assert before["advantages"].abs().sum() > 0
        expected = before["advantages"] * weight.unsqueeze(-1)
        assert torch.allclose(after["advantages"], expected, rtol=1e-4)
    assert seconds.min() == 0  # what never ran
    assert weighed[1]["advantages"][1].abs().sum() == 0


@pytest.mark.usefixtures("environment")
async def test_a_reward_function_has_the_reward_of_a_short_program(
    named: str, plain: dict[str, Any]
) -> None:
    workflow = RLVRWorkflow("trainer_client.integrations.areal.reward_fn", GCONFIG, ArealLetters())
    trajectory = await workflow.arun_episode(FakeEngine(PROGRAMS[named]), ROW)
    assert trajectory["rewards"].tolist() == pytest.approx([plain[named]["reward"]])


@pytest.mark.usefixtures("environment")
async def test_a_reward_function_raises_before_areal_uses_zero() -> None:
    wrapper = AsyncRewardWrapper(areal.reward_fn, max_workers=1, max_retries=0)
    with pytest.raises(DeadlineExceededError):
        await wrapper("", nap(60), [], [], **ROW)


def test_a_reward_function_raises_if_the_server_is_unreachable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(URL, GONE["url"])
    monkeypatch.setattr(areal, "_FUNCTION_SECONDS", 1.0)
    with pytest.raises(SampleLostError):
        areal.reward_fn("", VALID, [], [], **ROW)
