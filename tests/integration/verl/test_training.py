"""What veRL computes with durations in its gradient, from its own tensors."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.conftest import start_server, stop_server, wait_until
from tests.integration.verl.conftest import LONG_NAP_SECONDS, NAPPING
from tests.integration.verl.failing import FailingServer
from tests.integration.verl.training import OURS, TASK, VerlRun, start, train

if TYPE_CHECKING:
    import httpx

    from tests.conftest import RunningServer

GRPO = ["algorithm.adv_estimator=grpo", "actor_rollout_ref.rollout.n=2"]
OFF = "reward_server.durations.enabled=false"
REPEATABLE = "tests.integration.verl.repeatable"


def check_weights(run: VerlRun) -> None:
    """See that every advantage was multiplied by Δt / mean Δt, and nothing else was touched."""
    weights: list[float] = []
    for step in run.steps():
        real = [row for row in step["rows"] if not row["is_padding"]]
        seconds = np.array([row["info"]["duration_seconds"] for row in real])
        expected = seconds / seconds.mean()
        for row, weight in zip(real, expected, strict=True):
            stock = np.array(row["stock"]["advantages"])
            np.testing.assert_allclose(row["advantages"], stock * weight, rtol=1e-6, atol=1e-9)
            assert row["returns"] == row["stock"]["returns"]
            if np.abs(stock).max() > 1e-3:
                weights.append(weight)
        for row in step["rows"]:
            if row["is_padding"]:
                assert row["advantages"] == row["stock"]["advantages"]
        check_metrics(step["metrics"], seconds, expected)
    assert max(weights) > 1.2, "nothing was weighed up"
    assert min(weights) < 0.8, "nothing was weighed down"


def check_metrics(metrics: dict[str, float], seconds: np.ndarray, weights: np.ndarray) -> None:
    assert metrics["duration/mean"] == pytest.approx(seconds.mean())
    assert metrics["duration/std"] == pytest.approx(seconds.std())
    assert metrics["duration/weight_max"] == pytest.approx(weights.max())
    effective = weights.sum() ** 2 / (weights**2).sum()
    assert metrics["duration/effective_samples"] == pytest.approx(effective)


def improvements(run: VerlRun) -> list[dict[str, Any]]:
    return [row for row in run.rows() if row["extra_info"]["prompt_kind"] == "improve"]


@pytest.fixture(scope="module")
def sync_gae(models: Path, arena: RunningServer) -> VerlRun:
    words = ["--mode", "sync", "--steps", "4", "--loggers", "console,tensorboard"]
    return train(models / "sync-gae", arena.url, words)


def test_advantages_of_gae_are_weighed_by_durations(sync_gae: VerlRun) -> None:
    assert len(sync_gae.steps()) == 4
    check_weights(sync_gae)


def test_prompts_to_improve_name_parents_that_the_store_has(
    sync_gae: VerlRun, asked: httpx.Client
) -> None:
    rows = improvements(sync_gae)
    assert rows
    for row in rows:
        parent = asked.get(f"/v1/solutions/{row['extra_info']['parent_id']}").json()
        assert (parent["task_id"], parent["run_id"], parent["valid"]) == (TASK, "sync-gae", True)
        child = asked.get(f"/v1/solutions/{row['info']['solution_id']}").json()
        assert child["parent_id"] == row["extra_info"]["parent_id"]


def test_what_is_logged_reaches_the_console_and_tensorboard(sync_gae: VerlRun) -> None:
    assert "duration-aware gradient: on" in sync_gae.text()
    logged = sync_gae.logged()
    assert [line["training/global_step"] for line in logged] == [1, 2, 3, 4]
    recorded = [step["metrics"]["duration/mean"] for step in sync_gae.steps()]
    assert [line["duration/mean"] for line in logged] == pytest.approx(recorded, rel=1e-3)
    assert all("reward_server/valid/mean" in line for line in logged)
    assert list(Path(sync_gae.folder, "tensorboard").rglob("events.out.tfevents.*"))


@pytest.fixture(scope="module")
def colocate_grpo(straggling_models: Path, arena: RunningServer) -> VerlRun:
    words = ["--mode", "colocate_async", "--steps", "5", *GRPO]
    return train(straggling_models / "colocate-grpo", arena.url, words)


def test_advantages_of_grpo_are_weighed_by_durations(colocate_grpo: VerlRun) -> None:
    assert len(colocate_grpo.steps()) == 5
    check_weights(colocate_grpo)


def test_the_trainer_does_not_wait_for_stragglers(colocate_grpo: VerlRun) -> None:
    """Long naps were begun and given up, and no step took as long as one."""
    logged = colocate_grpo.logged()
    assert max(line["timing_s/gen"] for line in logged) < LONG_NAP_SECONDS
    trained = [row["info"]["duration_seconds"] for row in colocate_grpo.rows()]
    assert max(trained) < LONG_NAP_SECONDS
    assert sum(line["training/off_policy/cancelled_programs"] for line in logged) > 0


@pytest.fixture(scope="module")
def resumed(models: Path, arena: RunningServer) -> tuple[VerlRun, VerlRun]:
    words = ["--mode", "colocate_async", "trainer.save_freq=2"]
    folder = models / "colocate-gae"
    first = train(folder, arena.url, [*words, "--steps", "2"])
    before = VerlRun(folder, folder / "before")
    first.log.rename(before.log)
    return before, train(folder, arena.url, [*words, "--steps", "4"])


def test_a_run_resumes_from_its_checkpoint(resumed: tuple[VerlRun, VerlRun]) -> None:
    first, second = resumed
    assert [line["training/global_step"] for line in first.logged()] == [1, 2]
    assert [line["training/global_step"] for line in second.logged()] == [3, 4]
    check_weights(second)


def test_without_weighing_gradients_are_those_of_stock_verl(
    models: Path, arena: RunningServer
) -> None:
    words = ["--mode", "sync", "--steps", "2", OFF, "reward_server.prompts.improve_fraction=0"]
    stock = train(models / "stock", arena.url, words, (OURS[0], REPEATABLE))
    off = train(models / "off", arena.url, words, (*OURS, REPEATABLE))
    assert "duration-aware gradient" not in stock.text()
    assert "duration-aware gradient: off" in off.text()
    expected, found = stock.gradients(), off.gradients()
    assert len(expected) > 100
    assert expected.keys() == found.keys()
    for name, gradient in expected.items():
        np.testing.assert_array_equal(gradient, found[name], err_msg=name)
    assert any(np.abs(gradient).max() > 0 for gradient in expected.values())


def test_a_server_that_fails_costs_samples_and_not_the_run(
    models: Path, data_dir: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    server, url = start_server(data_dir, log, NAPPING)
    port = int(url.rpartition(":")[2])
    with FailingServer(url) as failing:
        words = ["--mode", "sync", "--steps", "6", *GRPO]
        process, run = start(models / "failing", failing.url, words)
        try:
            wait_until(lambda: len(run.steps()) >= 2 or process.poll() is not None, 600)
            server.kill()
            server.wait()
            time.sleep(20)  # the outage itself
            server, _ = start_server(data_dir, log, NAPPING, port=port)
            assert process.wait(600) == 0, run.text()[-6000:]
        finally:
            process.kill()
            process.wait()
            stop_server(server)
        assert failing.lost, "nothing was lost"
        trained = {row["info"]["solution_id"] for row in run.rows()}
    assert len(run.steps()) == 6
    assert len(trained) <= len(failing.kept)
    assert any(row["is_padding"] for step in run.steps() for row in step["rows"])
    check_weights(run)
