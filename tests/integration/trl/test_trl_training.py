"""Training by TRL's own loop on the CPU, with rewards of the real server."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
import torch
from trl import GRPOTrainer

from tests.integration.trl.losing import LosingServer
from tests.integration.trl.training import GROUP, Recorded, make, rows, tokenizer, weights_of
from tests.integration.verl.training import TASK
from trainer_client import RequestRefusedError
from trainer_client.integrations.trl.reward import make_async_reward, make_reward
from trainer_client.integrations.trl.rows import TaskPrompts
from trainer_client.run import Run
from trainer_client.settings import RunPromptSettings, RunSettings

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

    from tests.conftest import RunningServer

STEPS = 4
NAP = "A nap of 0.3 s"
EVALUATION = {"eval_strategy": "steps", "eval_steps": 2, "num_generations_eval": 2}


def stored(asked: httpx.Client, run_id: str) -> list[dict[str, Any]]:
    page = asked.get("/v1/solutions", params={"run_id": run_id, "limit": 100}).json()
    assert page["next_cursor"] is None
    solutions: list[dict[str, Any]] = page["solutions"]
    return solutions


def check_learned(trainer: Any, before: dict[str, torch.Tensor]) -> None:
    after = weights_of(trainer)
    assert all(value.isfinite().all() for value in after.values())
    assert any(not torch.equal(before[name], value) for name, value in after.items())


def check_weighed(trainer: Any) -> None:
    """See that every advantage was multiplied by Δt / mean Δt of the samples that are there."""
    weights: list[float] = []
    for batch in trainer.batches:
        if not batch.is_training:
            assert torch.equal(batch.advantages, batch.stock)
            continue
        there = [one.duration_seconds for one in batch.answers if one is not None]
        for index, one in enumerate(batch.answers):
            weight = 0.0 if one is None else one.duration_seconds / np.mean(there)
            expected = float(batch.stock[index]) * weight
            assert float(batch.advantages[index]) == pytest.approx(expected, rel=1e-5)
            if one is not None and batch.stock[index].abs() > 1e-3:
                weights.append(weight)
    assert max(weights) > 1.2, "nothing was weighed up"
    assert min(weights) < 0.8, "nothing was weighed down"


@pytest.fixture(scope="module")
def trained(models: Path, arena: RunningServer) -> Any:
    """Train with the whole of it: prompts to improve, durations, evaluation, accumulation."""
    settings = RunSettings(
        url=arena.url,
        tasks=(TASK,),
        run_id="trl-sync",
        prompts=RunPromptSettings(improve_fraction=0.5, epoch_rows=16, validation_rows=4),
    )
    prompts = TaskPrompts(settings, tokenizer(models), most_tokens=1024)
    trainer = make(
        Recorded,
        models,
        make_reward(settings.run()),
        prompts.rows(),
        eval_dataset=prompts.validation_rows(),
        prompts=prompts,
        durations=settings.durations,
        arguments={
            "max_steps": STEPS,
            "per_device_train_batch_size": GROUP,
            "gradient_accumulation_steps": 2,
            **EVALUATION,
        },
    )
    before = weights_of(trainer)
    trainer.train()
    check_learned(trainer, before)
    assert prompts.fallbacks == 0
    return trainer


def training_batches(trainer: Any) -> list[Any]:
    return [batch for batch in trainer.batches if batch.is_training]


def test_the_store_has_every_sample_under_its_step(trained: Any, asked: httpx.Client) -> None:
    batches = training_batches(trained)
    assert len(batches) == STEPS
    kept = {one["solution_id"]: one["step"] for one in stored(asked, "trl-sync")}
    expected = {
        answer.solution_id: step for step, one in enumerate(batches, 1) for answer in one.answers
    }
    assert len(expected) == STEPS * 2 * GROUP
    assert kept == expected


def test_advantages_of_a_run_are_weighed_by_measured_durations(trained: Any) -> None:
    check_weighed(trained)


def test_what_was_measured_is_in_the_logs_of_every_step(trained: Any) -> None:
    logged = [one for one in trained.state.log_history if "loss" in one]
    assert [one["step"] for one in logged] == [1, 2, 3, 4]
    for one, batch in zip(logged, training_batches(trained), strict=True):
        seconds = [answer.duration_seconds for answer in batch.answers]
        assert one["duration/mean"] == pytest.approx(np.mean(seconds), rel=1e-5)
        assert one["reward_server/duration_seconds/mean"] == pytest.approx(np.mean(seconds))
        valid = [answer.valid for answer in batch.answers]
        assert one["reward_server/valid/mean"] == pytest.approx(np.mean(valid))
        assert one["reward_server/lost/mean"] == 0
        assert math.isfinite(one["grad_norm"])
    evaluated = [one for one in trained.state.log_history if "eval_reward" in one]
    assert [one["step"] for one in evaluated] == [2, 4]
    assert all("eval_reward_server/valid/mean" in one for one in evaluated)


def test_prompts_improve_on_programs_of_the_step_before(trained: Any, asked: httpx.Client) -> None:
    improved = 0
    for step, batch in enumerate(training_batches(trained), 1):
        for first in range(0, len(batch.inputs), GROUP):
            group = batch.inputs[first : first + GROUP]
            assert all(row == group[0] for row in group), "a group has one prompt"
            parent_id = group[0]["parent_id"]
            if parent_id is None:
                continue
            improved += 1
            parent = asked.get(f"/v1/solutions/{parent_id}").json()
            assert (parent["run_id"], parent["valid"]) == ("trl-sync", True)
            assert parent["step"] < step
            child = asked.get(f"/v1/solutions/{batch.answers[first].solution_id}").json()
            assert child["parent_id"] == parent_id
    assert improved > 0


def test_validation_is_a_run_of_its_own(trained: Any, asked: httpx.Client) -> None:
    batches = [batch for batch in trained.batches if not batch.is_training]
    expected = {answer.solution_id for batch in batches for answer in batch.answers}
    kept = stored(asked, "trl-sync/validation")
    assert {one["solution_id"] for one in kept} == expected
    assert len(expected) == 2 * 4 * 2
    assert all(row["parent_id"] is None for batch in batches for row in batch.inputs)


def test_lost_samples_neither_stop_nor_distort_a_run(
    models: Path, arena: RunningServer, asked: httpx.Client, tmp_path: Path
) -> None:
    options = {"max_steps": STEPS, "log_completions": True, "output_dir": str(tmp_path)}
    with LosingServer(arena.url, NAP) as losing:
        function = make_async_reward(Run(losing.url, "trl-losing"))
        trainer = make(Recorded, models, function, rows(), arguments=options)
        before = weights_of(trainer)
        trainer.train()
    check_learned(trainer, before)
    check_weighed(trainer)
    answers = [answer for batch in trainer.batches for answer in batch.answers]
    assert len(answers) == STEPS * 2 * GROUP
    assert losing.lost
    assert 0 < answers.count(None) < len(answers)
    logged = [one for one in trainer.state.log_history if "loss" in one]
    assert len(logged) == STEPS
    shares = [one["reward_server/lost/mean"] for one in logged]
    assert np.mean(shares) == pytest.approx(answers.count(None) / len(answers))
    assert all(math.isfinite(one["reward"]) for one in logged)
    kept = {one["solution_id"] for one in stored(asked, "trl-losing")}
    assert {answer.solution_id for answer in answers if answer} <= kept
    tables = [pd.read_parquet(file) for file in sorted(tmp_path.glob("completions/*.parquet"))]
    table = pd.concat(tables)
    solution_ids = [answer.solution_id for answer in answers if answer]
    assert list(table["solution_id"].dropna()) == solution_ids
    assert (table["outcome"] == "lost: sandbox_lost").sum() == answers.count(None)
    assert (table["advantage"][table["solution_id"].isna()] == 0).all()


def test_stock_trl_takes_the_function_as_it_is(
    models: Path, arena: RunningServer, asked: httpx.Client
) -> None:
    functions = [make_reward(Run(arena.url, "trl-stock")), lambda **_: [0.5] * 8]
    trainer = make(GRPOTrainer, models, functions, arguments={"max_steps": 1})
    before = weights_of(trainer)
    trainer.train()
    check_learned(trainer, before)
    rewards = [one["reward"] for one in stored(asked, "trl-stock")]
    logged = trainer.state.log_history[0]
    assert logged["rewards/reward_server/mean"] == pytest.approx(np.mean(rewards), rel=1e-5)
    assert logged["reward"] == pytest.approx(np.mean(rewards) + 0.5, rel=1e-5)
    assert "duration/mean" not in logged


def test_a_resumed_run_may_repeat_earlier_samples(
    models: Path, arena: RunningServer, asked: httpx.Client, tmp_path: Path
) -> None:
    run = Run(arena.url, "trl-resumed")
    options = {"output_dir": str(tmp_path), "save_strategy": "steps", "save_steps": 1}
    make(Recorded, models, make_reward(run), arguments={**options, "max_steps": 1}).train()
    for _ in range(2):
        resumed = make(Recorded, models, make_reward(run), arguments={**options, "max_steps": 2})
        resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-1"))
    steps = [one["step"] for one in stored(asked, "trl-resumed")]
    assert sorted(steps) == [1] * 8 + [2] * 16


@pytest.mark.parametrize("make_function", [make_reward, make_async_reward])
def test_a_refused_request_stops_training(
    models: Path, arena: RunningServer, make_function: Any
) -> None:
    function = make_function(Run(arena.url, "trl-refused"))
    trainer = make(Recorded, models, function, rows(task_id="not-here"))
    before = weights_of(trainer)
    with pytest.raises(RequestRefusedError, match="no such task"):
        trainer.train()
    assert all(torch.equal(before[name], value) for name, value in weights_of(trainer).items())
