"""The folder of an evaluation: one process, one plan, one version of the data."""

from __future__ import annotations

import fcntl
import json
import os
import uuid
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from trainer_client.evaluate.plan import EvaluationPlan, UsageError
from trainer_client.evaluate.samples import SAMPLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

RUN = "run.json"
Messages = list[dict[str, str]]


@dataclass(frozen=True, slots=True)
class DataFacts:
    """Facts about a task; `messages` is the prompt of all from-scratch samples."""

    higher_is_better: bool
    metric: str
    data_digest: str
    source: str
    messages: Messages


@dataclass(frozen=True, slots=True)
class EvaluationRun:
    """The evaluation of a folder; `versions` is for readers only."""

    plan: EvaluationPlan
    tasks: Mapping[str, DataFacts]
    versions: Mapping[str, str]


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder, until the end of this process at the latest.

    Raises:
        UsageError: another process has locked it, or it is not writable.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("w")
    except OSError as error:
        message = f"{folder} cannot be used: {error.strerror}"
        raise UsageError(message) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = f"another evaluation is writing to {folder}"
            raise UsageError(message) from None
        yield


def read_run(folder: Path) -> EvaluationRun | None:
    """Read the evaluation of a folder; None if it is new.

    Raises:
        UsageError: the folder contains something else.
    """
    try:
        content = json.loads((folder / RUN).read_text())
        plan = EvaluationPlan(**content["plan"] | {"tasks": tuple(content["plan"]["tasks"])})
        tasks = {name: DataFacts(**facts) for name, facts in content["tasks"].items()}
        return EvaluationRun(plan, tasks, content["versions"])
    except FileNotFoundError:
        if (folder / SAMPLES).exists():
            message = f"{folder} has samples but no {RUN}: whose they are is not known"
            raise UsageError(message) from None
        return None
    except (ValueError, KeyError, TypeError, AttributeError):
        message = f"{folder / RUN} cannot be read"
        raise UsageError(message) from None


def write_run(folder: Path, run: EvaluationRun) -> None:
    """Write the evaluation of a folder atomically."""
    draft = folder / f"{RUN}.draft"
    with draft.open("w") as file:
        json.dump(asdict(run), file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(folder / RUN)


def resolve_run_id(plan: EvaluationPlan, earlier: EvaluationRun | None) -> EvaluationPlan:
    """Return the plan with its run id; a new one gets a random id.

    Raises:
        UsageError: the folder holds samples of another plan; the text names what differs.
    """
    if earlier is None:
        return replace(plan, run_id=plan.run_id or f"evaluation-{uuid.uuid4().hex[:12]}")
    named = replace(plan, run_id=plan.run_id or earlier.plan.run_id)
    changes = _differences(asdict(earlier.plan), asdict(named))
    if changes:
        message = f"the folder holds an evaluation with other parameters: {'; '.join(changes)}"
        raise UsageError(message)
    return named


def check_facts(earlier: EvaluationRun, now: Mapping[str, DataFacts]) -> None:
    """Check that the data of the tasks has not changed.

    Raises:
        UsageError: the data of a task has changed.
    """
    for task_id, facts in earlier.tasks.items():
        if now[task_id].data_digest != facts.data_digest:
            message = (
                f"the server's data of {task_id} is not that of the folder's samples: "
                f"{now[task_id].data_digest}, before {facts.data_digest}"
            )
            raise UsageError(message)


def _differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    names = [name for name in before if before[name] != now[name]]
    return [f"{name} is {_show(now[name])}, before {_show(before[name])}" for name in names]


def _show(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
