"""What TRL trains on with durations in its advantages, against what it would train on without."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import torch
from trl import GRPOTrainer

from tests.integration.trl.training import GROUP, Recorded, Stock, make, rows
from tests.integration.verl.conftest import nap
from tests.integration.verl.training import TASK
from trainer_client.integrations.trl.reward import SyncReward
from trainer_client.integrations.trl.trainer import DurationGRPOTrainer
from trainer_client.run import Run
from trainer_client.settings import DurationSettings

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import RunningServer
    from trainer_client.client.answers import Answer

REWARDS = [-10.0, -9.5, -1.0, None, -9.5, -0.5, -1.0, -10.0]
SECONDS = [1.0, 2.0, 3.0, None, 4.0, 5.0, 6.0, 7.0]
MEAN = 28 / 7
WEIGHTS = [0.25, 0.5, 0.75, 1.0, 1.0, 1.25, 1.5, 1.75]


@pytest.fixture(scope="module")
def answer(arena: RunningServer) -> Answer:
    """Get a real answer, of which others are made."""
    with Run(arena.url, "advantages").client() as client:
        return client.score(TASK, completion=nap(0.1))


class Canned(SyncReward):
    """The function as if the server had answered this."""

    def __init__(self, answer: Answer, cpu_seconds: float = 1.0) -> None:
        super().__init__(Run(run_id="canned"))
        self._canned = [
            replace(answer, reward=reward, duration_seconds=seconds, cpu_seconds=cpu_seconds)
            if reward is not None and seconds is not None
            else None
            for reward, seconds in zip(REWARDS, SECONDS, strict=True)
        ]

    def __call__(self, *_: object, **columns: Any) -> list[float | None]:
        self.answers = tuple(self._canned[: len(columns["completions"])])
        return [None if one is None else one.reward for one in self.answers]


def train(kind: type[GRPOTrainer], models: Path, answer: Answer, **more: Any) -> Any:
    trainer = make(kind, models, Canned(answer), arguments={"max_steps": 1}, **more)
    trainer.train()
    return trainer


def test_durations_weight_advantages_after_group_normalisation(
    models: Path, answer: Answer
) -> None:
    without = train(Stock, models, answer)
    (weighed,) = train(Recorded, models, answer).batches
    assert torch.equal(weighed.stock, without.stock)
    expected = without.stock * torch.tensor(WEIGHTS)
    assert torch.equal(weighed.advantages, expected)
    assert without.stock[3] == 0
    assert without.stock.count_nonzero() == 7
    assert weighed.stock[:GROUP].sum() == pytest.approx(0, abs=1e-5)


def test_metrics_are_computed_from_real_samples(models: Path, answer: Answer) -> None:
    logged = train(Recorded, models, answer).state.log_history[0]
    assert logged["duration/mean"] == pytest.approx(MEAN)
    assert (logged["duration/min"], logged["duration/max"]) == (1, 7)
    assert logged["duration/weight_max"] == pytest.approx(1.75)
    assert logged["duration/effective_samples"] == pytest.approx(49 / (140 / 16))


def test_the_batch_keeps_its_order_until_trl_shuffles_it(models: Path, answer: Answer) -> None:
    """With several slices and iterations, what is trained on is what was weighed."""
    options = {"max_steps": 4, "steps_per_generation": 2, "num_iterations": 2}
    per_device = {"per_device_train_batch_size": GROUP, "gradient_accumulation_steps": 1}
    trainer = make(Recorded, models, Canned(answer), arguments=options | per_device)
    trainer.train()
    (batch,) = trainer.batches
    trained = torch.cat([one["advantages"] for one in trainer._buffered_inputs])
    assert len(trained) == 8
    assert torch.equal(trained.sort().values, batch.advantages.sort().values)
    assert torch.equal(batch.advantages, batch.stock * torch.tensor(WEIGHTS))


def test_evaluation_is_not_weighed(models: Path, answer: Answer) -> None:
    trainer = make(Recorded, models, Canned(answer), eval_dataset=rows(2))
    trainer.evaluate()
    (batch,) = trainer.batches
    assert not batch.is_training
    assert torch.equal(batch.advantages, batch.stock)
    assert batch.stock.count_nonzero() > 0
    assert not any("duration/" in name for name in trainer.state.log_history[0])


@pytest.mark.parametrize(
    ("durations", "weights"),
    [
        (DurationSettings(enabled=False), [1.0] * 8),
        (DurationSettings(clock="cpu"), [1.0] * 8),
        (DurationSettings(clip=1.5), [*WEIGHTS[:7], 1.5]),
        (
            DurationSettings(mean="task"),
            [1 / 2, 2 / 2, 3 / 2, 1.0, 4 / 5.5, 5 / 5.5, 6 / 5.5, 7 / 5.5],
        ),
    ],
    ids=["off", "cpu", "clip", "task"],
)
def test_settings_say_how_durations_weigh(
    models: Path, answer: Answer, durations: DurationSettings, weights: list[float]
) -> None:
    two_tasks = rows(2).remove_columns("task_id").add_column("task_id", ["one", "other"])
    (batch,) = train(Recorded, models, answer, train_dataset=two_tasks, durations=durations).batches
    assert torch.equal(batch.advantages, batch.stock * torch.tensor(weights))


def test_completions_that_trl_masks_do_not_count(models: Path, answer: Answer) -> None:
    trainer = make(Recorded, models, Canned(answer), arguments={"max_steps": 1})
    stock = GRPOTrainer._generate_and_score_completions

    def masking(self: Any, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        output: dict[str, Any] = stock(self, inputs)
        output["completion_mask"][:] = 1
        output["completion_mask"][5:] = 0
        return output

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GRPOTrainer, "_generate_and_score_completions", masking)
        trainer.train()
    (batch,) = trainer.batches
    expected = batch.stock * torch.tensor([0.4, 0.8, 1.2, 1.0, 1.6, 1.0, 1.0, 1.0])
    torch.testing.assert_close(batch.advantages, expected)


def test_a_trainer_without_our_function_has_no_durations(models: Path, answer: Answer) -> None:
    with pytest.raises(ValueError, match="0 of reward_funcs"):
        make(DurationGRPOTrainer, models, lambda **_: [0.0])
    with pytest.raises(ValueError, match="2 of reward_funcs"):
        make(DurationGRPOTrainer, models, [Canned(answer), Canned(answer)])


def test_another_trl_is_refused_in_plain_words(
    models: Path, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = make(DurationGRPOTrainer, models, Canned(answer))
    monkeypatch.setattr(
        GRPOTrainer, "_generate_and_score_completions", lambda *_: {"advantage": None}
    )
    with pytest.raises(RuntimeError, match=r"TRL 1\.16.*cannot be extended"):
        trainer.train()
    monkeypatch.delattr(GRPOTrainer, "_generate_and_score_completions")
    with pytest.raises(RuntimeError, match="has no _generate_and_score_completions"):
        make(DurationGRPOTrainer, models, Canned(answer))
