"""`python -m trainer_client.lab`: trains all arms, shows how far it is, and writes the report."""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from trainer_client.lab.experiments import ARMS, terms_of
from trainer_client.lab.records import Book, record
from trainer_client.lab.report import draw
from trainer_client.lab.serving import beside_python, serving
from trainer_client.lab.space import TASK
from trainer_client.lab.training import Training

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainer_client.lab.experiments import Arm
    from trainer_client.lab.training import Step

_FINAL = 32


def _parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m trainer_client.lab", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(".data/lab"), help="of the report")
    parser.add_argument("--server", type=Path, default=beside_python(), help="reward-server")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--arms", nargs="*", default=[arm.name for arm in ARMS])
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> None:
    """Run the lab."""
    asked = _parse(words)
    asked.data_dir = asked.folder / "server"
    asked.data_dir.mkdir(parents=True, exist_ok=True)
    budget = {"steps": asked.steps, "batch": asked.batch}
    book = Book(asked.folder / "results.json", budget)
    _prepare(asked.server, asked.data_dir)
    wanted = [
        (arm, seed)
        for seed in range(1, asked.seeds + 1)
        for arm in ARMS
        if arm.name in asked.arms and not book.has(arm.name, seed)
    ]
    for instrument in ("static", "off"):
        todo = [(arm, seed) for arm, seed in wanted if arm.instrument == instrument]
        if todo:
            _train(asked, book, todo)
    draw(book, asked.folder)
    Console().print(f"report: {(asked.folder / 'report.html').resolve()}")


def _prepare(server: Path, data_dir: Path) -> None:
    if (data_dir / TASK / "prepared").exists():
        return
    words = ["tasks", "prepare", TASK, "--twin", "--data-dir", str(data_dir)]
    subprocess.run([server, *words], check=True)


def _train(asked: argparse.Namespace, book: Book, todo: Sequence[tuple[Arm, int]]) -> None:
    """Make runs that want the same server."""
    arm, _ = todo[0]
    settings = {
        "REWARD_SERVER_INSTRUMENT__KIND": arm.instrument,
        "REWARD_SERVER_SANDBOX__SLOTS": str(terms_of(arm, **book.budget).in_flight),
    }
    with serving(asked.server, asked.data_dir, settings) as client, _progress() as progress:
        for arm, seed in todo:
            bar = progress.add_task(f"{arm.name}, seed {seed}", total=asked.steps, shown="")
            training = Training(client, _run_id(arm, seed), terms_of(arm, **book.budget), seed)
            steps = []
            for step in training.steps():
                steps.append(step)
                progress.update(bar, advance=1, shown=_show(step))
            made = record(arm.name, seed, steps, training.final(_FINAL))
            book.add(made, shlex.join(["python", "-m", "trainer_client.lab", *sys.argv[1:]]))


def _run_id(arm: Arm, seed: int) -> str:
    """Return a name that no run had before: what one did is not improved on by the next."""
    return f"lab/{arm.name}/{seed}/{uuid.uuid4().hex[:8]}"


def _show(step: Step) -> str:
    best = "" if step.best_score is None else f" best {step.best_score:.3f}"
    return f"valid {step.valid:4.0%} {step.mean_duration:5.1f} s{best}"


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description:28}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} {task.fields[shown]}"),
        TimeElapsedColumn(),
    )


if __name__ == "__main__":
    main()
