"""veRL's reward manager, called as its reward workers call it."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from omegaconf import OmegaConf
from tensordict import TensorDict
from transformers import AutoTokenizer
from verl import DataProto
from verl.trainer.ppo.v1.trainer_base import TRAINER_REGISTRY
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync

from tests.integration.verl.conftest import BOOK
from tests.integration.verl.training import TASK
from trainer_client import AsyncRewardClient, InfrastructureError
from trainer_client.integrations.verl import plugin
from trainer_client.integrations.verl.manager import RewardServerManager

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import RunningServer


@pytest.fixture(autouse=True)
def weighing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be a process in which veRL has loaded the plug-in."""
    monkeypatch.setitem(TRAINER_REGISTRY, "sync", plugin.DurationAwareSync)


def configuration(url: str, mode: str = "sync", **more: object) -> Any:
    node = {"url": url, "tasks": [TASK], "run_id": "manager", **more}
    return OmegaConf.create({"reward_server": node, "trainer": {"v1": {"trainer_mode": mode}}})


@pytest.fixture
def tokenizer(models: Path) -> Any:
    return AutoTokenizer.from_pretrained(models / "tokenizer")


def sample(tokenizer: Any, uid: str, answer: str, **extra: object) -> DataProto:
    """Return what veRL's agent loop hands to a reward worker: one answer, padded."""
    response = [tokenizer.get_vocab()[answer], tokenizer.eos_token_id, tokenizer.pad_token_id]
    tensors = {
        "prompts": torch.tensor([[1, 2, 3]]),
        "responses": torch.tensor([response]),
        "attention_mask": torch.tensor([[1, 1, 1, 1, 1, 0]]),
    }
    fields = {
        "data_source": TASK,
        "uid": uid,
        "session_id": 0,
        "global_steps": 3,
        "extra_info": extra,
    }
    columns = {name: np.array([value], dtype=object) for name, value in fields.items()}
    return DataProto(batch=TensorDict(tensors, batch_size=1), non_tensor_batch=columns)


async def test_a_sample_is_scored_once_under_its_own_name(
    arena: RunningServer, tokenizer: Any
) -> None:
    manager = RewardServerManager(configuration(arena.url), tokenizer)
    ask = [manager.run_single(sample(tokenizer, "twice", BOOK[2])) for _ in range(2)]
    first, second = await asyncio.gather(*ask)
    assert first == second
    assert first["reward_extra_info"]["valid"] == 1
    async with AsyncRewardClient(arena.url) as client:
        stored = await client.get(f"/v1/solutions/{first['reward_extra_info']['solution_id']}")
    assert (stored["run_id"], stored["step"]) == ("manager", 3)


async def test_validation_has_a_run_of_its_own(arena: RunningServer, tokenizer: Any) -> None:
    manager = RewardServerManager(configuration(arena.url), tokenizer)
    found = await manager.run_single(sample(tokenizer, "v", BOOK[2], is_validation=True))
    async with AsyncRewardClient(arena.url) as client:
        stored = await client.get(f"/v1/solutions/{found['reward_extra_info']['solution_id']}")
    assert stored["run_id"] == "manager/validation"


async def test_hundreds_of_samples_wait_without_a_thread_each(
    arena: RunningServer, tokenizer: Any
) -> None:
    manager = RewardServerManager(configuration(arena.url), tokenizer)
    threads = threading.active_count()
    samples = [sample(tokenizer, f"many-{n}", BOOK[0]) for n in range(300)]
    outstanding = [asyncio.create_task(manager.run_single(one)) for one in samples]
    await outstanding[0]
    assert threading.active_count() <= threads + 1
    found = await asyncio.gather(*outstanding)
    assert len({one["reward_extra_info"]["solution_id"] for one in found}) == 300
    assert len({tuple(one["reward_extra_info"]) for one in found}) == 1


async def test_what_the_infrastructure_lost_is_raised(tokenizer: Any) -> None:
    gone = configuration("http://127.0.0.1:9", outage_seconds=0, deadline_seconds=5)
    manager = RewardServerManager(gone, tokenizer)
    with pytest.raises(InfrastructureError):
        await manager.run_single(sample(tokenizer, "lost", BOOK[2]))


def test_a_trainer_without_the_plugin_is_refused(
    arena: RunningServer, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    RewardServerManager(configuration(arena.url), tokenizer)
    monkeypatch.setitem(TRAINER_REGISTRY, "sync", PPOTrainerSync)
    for mode in ("sync", "separate_async"):
        with pytest.raises(RuntimeError, match="does not weigh gradients"):
            RewardServerManager(configuration(arena.url, mode), tokenizer)
        unweighed = configuration(arena.url, mode, durations={"enabled": False})
        RewardServerManager(unweighed, tokenizer)
