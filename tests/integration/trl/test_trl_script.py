"""The script of the documentation, in miniature and in two processes that share each group."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.conftest import ROOT
from tests.integration.verl.training import TASK

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

    from tests.conftest import RunningServer

SCRIPT = ROOT / "docs/examples/train_trl.py"
STEPS = 3
GROUP = 8
MINIATURE = {
    "num_generations": GROUP,
    "per_device_train_batch_size": GROUP // 2,
    "max_steps": STEPS,
    "save_steps": STEPS,
    "logging_steps": 1,
    "max_completion_length": 1,
    "learning_rate": 0.01,
    "use_cpu": "true",
    "bf16": "false",
    "report_to": "none",
    "improve_fraction": 1.0,
    "most_prompt_tokens": 1024,
}


@pytest.fixture(scope="module")
def folder(models: Path, arena: RunningServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the script and return the folder that it wrote."""
    folder = tmp_path_factory.mktemp("script")
    named = {
        "model": models / "policy",
        "tokenizer": models / "tokenizer",
        "tasks": TASK,
        "server": arena.url,
        "run_id": "trl-script",
        "output_dir": folder,
        **MINIATURE,
    }
    words = [str(word) for name, value in named.items() for word in (f"--{name}", value)]
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    places = f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"
    environment = {**os.environ, "PYTHONPATH": places, "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(
        [sys.executable, *launch, ROOT / "tests/integration/trl/recording.py", SCRIPT, *words],
        env={**environment, "HF_HUB_OFFLINE": "1", "RECORDING_FOLDER": str(folder)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-6000:]
    assert (folder / "model.safetensors").exists()
    return folder


@pytest.fixture(scope="module")
def logged(folder: Path) -> list[dict[str, Any]]:
    """Return what was logged of each step."""
    state = json.loads((folder / f"checkpoint-{STEPS}/trainer_state.json").read_text())
    return [one for one in state["log_history"] if "loss" in one]


@pytest.fixture(scope="module")
def samples(logged: list[dict[str, Any]], asked: httpx.Client) -> list[list[dict[str, Any]]]:
    """Return what the store has of each step."""
    assert [one["step"] for one in logged] == [1, 2, 3]
    page = asked.get("/v1/solutions", params={"run_id": "trl-script", "limit": 100}).json()
    found = [asked.get(f"/v1/solutions/{one['solution_id']}").json() for one in page["solutions"]]
    return [[one for one in found if one["step"] == step] for step in range(1, STEPS + 1)]


def test_both_processes_score_their_half_of_each_group(samples: list[list[dict[str, Any]]]) -> None:
    for of_step in samples:
        ranks = [one["sample_id"].partition("/")[0] for one in of_step]
        assert sorted(ranks) == ["0"] * (GROUP // 2) + ["1"] * (GROUP // 2)


def test_durations_are_weighed_over_all_processes(
    logged: list[dict[str, Any]], samples: list[list[dict[str, Any]]]
) -> None:
    for one, of_step in zip(logged, samples, strict=True):
        seconds = np.array([sample["duration_seconds"] for sample in of_step])
        weights = seconds / seconds.mean()
        effective = weights.sum() ** 2 / (weights**2).sum()
        assert one["duration/mean"] == pytest.approx(seconds.mean(), rel=1e-4)
        assert one["duration/weight_max"] == pytest.approx(weights.max(), rel=1e-4)
        assert one["duration/effective_samples"] == pytest.approx(effective, rel=1e-4)
        valid = np.mean([sample["valid"] for sample in of_step])
        assert one["reward_server/valid/mean"] == pytest.approx(valid)


def test_each_process_weighs_its_own_samples(
    folder: Path, samples: list[list[dict[str, Any]]]
) -> None:
    files = [folder / f"rank-{rank}.jsonl" for rank in (0, 1)]
    ranks = [[json.loads(line) for line in file.read_text().splitlines()] for file in files]
    trained = 0
    for step, of_step in enumerate(samples):
        seconds = {one["solution_id"]: one["duration_seconds"] for one in of_step}
        mean = np.mean(list(seconds.values()))
        for rank in ranks:
            weights = [seconds[one] / mean for one in rank[step]["solutions"]]
            expected = np.array(rank[step]["stock"]) * weights
            np.testing.assert_allclose(rank[step]["advantages"], expected, rtol=1e-5, atol=1e-7)
            trained += int(np.count_nonzero(expected))
    assert trained > GROUP


def test_a_group_that_two_processes_share_has_one_prompt(
    samples: list[list[dict[str, Any]]],
) -> None:
    parents = [{one["parent_id"] for one in of_step} for of_step in samples]
    assert parents[0] == {None}
    assert all(len(of_step) == 1 for of_step in parents)
    first_valid = {one["solution_id"] for one in samples[0] if one["valid"]}
    assert parents[1] <= first_valid
