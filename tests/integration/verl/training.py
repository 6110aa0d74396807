"""A training run of unmodified veRL, and what it wrote down."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

TASK = "spooky-author-identification"
OURS = ("trainer_client.integrations.verl.cpu", "trainer_client.integrations.verl.plugin")
_MODULES = "ray_kwargs.ray_init.runtime_env.env_vars.VERL_USE_EXTERNAL_MODULES"
_FIGURE = re.compile(r"([\w/@.-]+):(-?[\d.e+-]+|nan|inf)(?= - |$)")


@dataclass(frozen=True, slots=True)
class VerlRun:
    """A run that has ended, or is under way."""

    folder: Path
    log: Path

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def steps(self) -> list[dict[str, Any]]:
        """Return the rows and metrics of each step, as recorded."""
        files = sorted(self.folder.glob("step-*.json"), key=lambda file: int(file.stem[5:]))
        return [json.loads(file.read_text()) for file in files]

    def rows(self) -> list[dict[str, Any]]:
        return [row for step in self.steps() for row in step["rows"] if not row["is_padding"]]

    def logged(self) -> list[dict[str, float]]:
        """Return the metrics of each step, as veRL printed them."""
        lines = [line for line in self.text().splitlines() if "training/global_step:" in line]
        return [{name: float(value) for name, value in _FIGURE.findall(line)} for line in lines]

    def gradients(self) -> dict[str, np.ndarray]:
        """Return every gradient of every optimizer step, actor's and critic's."""
        found = {}
        for file in sorted(self.folder.glob("gradients-*.npz")):
            with np.load(file) as content:
                found.update({f"{file.stem}/{name}": content[name] for name in content.files})
        return found


def start(
    folder: Path, url: str, words: list[str], modules: tuple[str, ...] = OURS
) -> tuple[subprocess.Popen[bytes], VerlRun]:
    """Start a run of the preset for CPUs with the models in the folder above."""
    folder.mkdir(exist_ok=True)
    run = VerlRun(folder, folder / "log")
    models = folder.parent
    command = [
        *(sys.executable, "-m", "trainer_client.launch", "--preset", "cpu"),
        *("--server", url, "--task", TASK, "--run-id", folder.name, *words),
        f"actor_rollout_ref.model.path={models}/policy",
        f"actor_rollout_ref.model.tokenizer_path={models}/tokenizer",
        f"critic.model.path={models}/critic",
        f"critic.model.tokenizer_path={models}/tokenizer",
        f"trainer.default_local_dir={folder}/checkpoints",
        f"{_MODULES}='{','.join((*modules, 'tests.integration.verl.recording'))}'",
    ]
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "RECORDING_FOLDER": str(folder),
        "TENSORBOARD_DIR": str(folder / "tensorboard"),
        "HF_HUB_OFFLINE": "1",
    }
    with run.log.open("ab") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env=environment, cwd=folder
        )
    return process, run


def train(folder: Path, url: str, words: list[str], modules: tuple[str, ...] = OURS) -> VerlRun:
    """Train to the end."""
    process, run = start(folder, url, words, modules)
    code = process.wait(900)
    assert code == 0, f"the run ended with {code}:\n{run.text()[-6000:]}"
    return run
