"""A task of a few rows, whose own files write down how often they were called."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ID = "tiny-task"
CARD = """
id = "{task_id}"
title = "Tiny"
metric = "area under the ROC curve"
higher_is_better = true
wall_seconds = 60
memory_bytes = 1_073_741_824
disk_bytes = 1_073_741_824
artifact_bytes = 1_048_576
answers = "test.csv"
sample_submission = "sample.csv"
columns = ["id", "y"]
public_files = ["description.md", "sample.csv", "test.csv", "train.csv"]
raw_files = ["train.csv"]

[twin]
small = 40
full = 80
"""
TWIN = """
import random
from pathlib import Path

def generate(raw, seed, rows):
    with Path({log!r}).open("a") as log:
        log.write("twin\\n")
    draw = random.Random(seed)
    lines = [f"{{i}},{{draw.random()}},{{i % 2}}" for i in range(rows)]
    (raw / "train.csv").write_text("id,x,y\\n" + "\\n".join(lines) + "\\n")
"""
PREPARE = """
from pathlib import Path

def prepare(raw, public, private):
    with Path({log!r}).open("a") as log:
        log.write("split\\n")
    header, *rows = (raw / "train.csv").read_text().splitlines()
    train, test = rows[:-10], [row.split(",") for row in rows[-10:]]
    (public / "train.csv").write_text("\\n".join([header, *train]) + "\\n")
    (public / "test.csv").write_text("id,x\\n" + "".join(f"{{i}},{{x}}\\n" for i, x, _ in test))
    (private / "test.csv").write_text("id,y\\n" + "".join(f"{{i}},{{y}}\\n" for i, _, y in test))
    (public / "sample.csv").write_text("id,y\\n" + "".join(f"{{i}},0.5\\n" for i, _, _ in test))
"""
GRADE = """
from reward_server.tasks.sdk.checks import align_binary
from reward_server.tasks.sdk.metrics import roc_auc

def align(submission, answers):
    return align_binary(submission, answers, id_column="id", target="y")

def score(truth, prediction):
    return roc_auc(truth, prediction)
"""


def write_task(directory: Path, task_id: str = ID) -> Path:
    folder = directory / task_id
    folder.mkdir(parents=True)
    log = str(directory / f"{task_id}.log")
    (folder / "task.toml").write_text(CARD.format(task_id=task_id))
    (folder / "description.md").write_text("# Tiny\n\nPredict y.\n\n## Metric\n\nROC AUC.\n")
    (folder / "twin.py").write_text(TWIN.format(log=log))
    (folder / "prepare.py").write_text(PREPARE.format(log=log))
    (folder / "grade.py").write_text(GRADE)
    return folder


def calls(folder: Path) -> list[str]:
    log = folder.with_name(f"{folder.name}.log")
    return log.read_text().split() if log.exists() else []


def in_a_fork(work: Callable[[], object]) -> int:
    """Do something in a process of its own, and return the status it ended with."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:  # noqa: BLE001 -- the fork must never return into the tests
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]
