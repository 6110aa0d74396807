"""`python -m trainer_client.lab`: trains all arms, shows progress, and writes the report."""

from __future__ import annotations

import argparse
import json
import shlex
import signal
import subprocess
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from trainer_client.lab.experiments import ARMS, EXPERIMENTS, config_of
from trainer_client.lab.program_space import TASK
from trainer_client.lab.records import RESULTS, RunRecords, record
from trainer_client.lab.report import draw
from trainer_client.lab.server import beside_python, serving
from trainer_client.lab.training import Training

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainer_client.lab.experiments import Arm
    from trainer_client.lab.training import LabStep

_FINAL_SAMPLES = 64
_PRELOAD = (
    *("numpy", "pandas", "sklearn.ensemble", "sklearn.linear_model", "sklearn.metrics"),
    *("sklearn.model_selection", "sklearn.tree"),
)
# All samples of a step run at once, so each gets what it needs instead of the task's limit.
_MEMORY_BYTES = 384 << 20


def _parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m trainer_client.lab", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(".data/lab"), help="of the report")
    parser.add_argument("--server", type=Path, default=beside_python(), help="reward-server")
    parser.add_argument("--data-dir", type=Path, help="the server's; default: FOLDER/server")
    parser.add_argument("--seeds", type=int, default=1, help="how many runs of each arm")
    parser.add_argument("--first-seed", type=int, default=1, help="the others follow it")
    parser.add_argument("--steps", type=int, default=10, help="of each run")
    parser.add_argument("--batch", type=int, default=24, help="samples that a step trains on")
    names = [experiment.name for experiment in EXPERIMENTS]
    parser.add_argument("--only", choices=names, help="the arms of one experiment, not of all")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> None:
    """Run the lab."""
    arguments = _parse(words)
    arguments.data_dir = arguments.data_dir or arguments.folder / "server"
    for folder in (arguments.folder, arguments.data_dir):
        folder.mkdir(parents=True, exist_ok=True)
    config = {arm.name: {**arm.config, "instrument": arm.instrument} for arm in ARMS}
    budget = {"steps": arguments.steps, "batch": arguments.batch}
    results = RunRecords(arguments.folder / RESULTS, budget, config)
    _prepare(arguments.server, arguments.data_dir)
    todo = [
        (arm, seed)
        for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds)
        for arm in _arms(arguments.only)
        if not results.has(arm.name, seed)
    ]
    with _progress() as progress:
        whole = progress.add_task("all runs", total=len(todo) * arguments.steps, shown="")
        for instrument in ("static", "off"):
            _train(
                arguments,
                results,
                [one for one in todo if one[0].instrument == instrument],
                progress,
            )
        progress.stop_task(whole)
    Console().print(f"report: {draw(results, arguments.folder).resolve()}")


def _arms(only: str | None) -> list[Arm]:
    wanted = [one for one in EXPERIMENTS if only in {None, one.name}]
    names = {name for one in wanted for name in (one.with_it, one.without_it)}
    return [arm for arm in ARMS if arm.name in names]


def _prepare(server: Path, data_dir: Path) -> None:
    if (data_dir / TASK / "prepared").exists():
        return
    words = ["tasks", "prepare", TASK, "--twin", "--data-dir", str(data_dir)]
    subprocess.run([server, *words], check=True)


def _train(
    arguments: argparse.Namespace,
    results: RunRecords,
    todo: Sequence[tuple[Arm, int]],
    progress: Progress,
) -> None:
    """Train the runs that need the same server settings."""
    if not todo:
        return
    in_flight = max(config_of(arm, **results.budget).in_flight for arm, _ in todo)
    settings = {
        "REWARD_SERVER_INSTRUMENT__KIND": todo[0][0].instrument,
        "REWARD_SERVER_LIMITS__MEMORY_BYTES": str(_MEMORY_BYTES),
        "REWARD_SERVER_SANDBOX__PRELOAD": json.dumps(_PRELOAD),
        "REWARD_SERVER_SANDBOX__SLOTS": str(in_flight),
    }
    whole = progress.task_ids[0]
    with serving(arguments.server, arguments.data_dir, settings) as client:
        for arm, seed in todo:
            bar = progress.add_task(f"{arm.name}, seed {seed}", total=arguments.steps, shown="")
            training = Training(client, _run_id(arm, seed), config_of(arm, **results.budget), seed)
            steps = []
            for step in training.steps():
                steps.append(step)
                progress.update(bar, advance=1, shown=_show(step))
                progress.update(whole, advance=1)
            made = record(arm.name, seed, steps, training.final(_FINAL_SAMPLES))
            results.add(made, shlex.join(["python", "-m", "trainer_client.lab", *sys.argv[1:]]))


def _run_id(arm: Arm, seed: int) -> str:
    """Return a new run id, so that a run never improves on solutions of an earlier one."""
    name = arm.name.replace(",", "").replace(" ", "-")
    return f"lab/{name}/{seed}/{uuid.uuid4().hex[:8]}"


def _show(step: LabStep) -> str:
    best = "" if step.best_score is None else f" best {step.best_score:.3f}"
    return f"valid {step.valid:4.0%} {step.mean_duration:5.1f} s{best}"


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description:40}"),
        BarColumn(bar_width=20),
        TextColumn("{task.completed}/{task.total} {task.fields[shown]}"),
        TimeElapsedColumn(),
    )


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # terminates the server, too
    main()
