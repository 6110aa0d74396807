"""What a run is asked to be: a preset, changed by options, changed by `KEY=VALUE`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer_client.client.options import HERE
from trainer_client.integrations.verl.findings import Tree, at

FOLDER = Path(__file__).parent / "presets"
DEFAULT = "a100x8"
_BUFFER = {
    "path": "pkg://trainer_client.integrations.verl.buffer",
    "name": "CancellingReplayBuffer",
}


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """What the command line says; None is what it does not say."""

    preset: str = DEFAULT
    server: str | None = None
    tasks: tuple[str, ...] = ()
    run_id: str | None = None
    mode: str | None = None
    model: str | None = None
    critic: str | None = None
    loggers: tuple[str, ...] = ()
    steps: int | None = None
    is_fresh: bool = False
    overrides: tuple[str, ...] = ()


def names() -> list[str]:
    """Return the presets that come with this package."""
    return sorted(file.stem for file in FOLDER.glob("*.yaml"))


def find(preset: str) -> Path:
    """Return a preset's file, by its name or its path.

    Raises:
        ValueError: when there is none.
    """
    file = FOLDER / f"{preset}.yaml" if preset in names() else Path(preset)
    if not file.is_file():
        message = f"there is no preset {preset!r}: {', '.join(names())}, or a file of your own"
        raise ValueError(message)
    return file


def merge(below: Tree, above: Tree) -> Tree:
    """Return both, and where both say something, what the second says."""
    merged = dict(below)
    for name, value in above.items():
        old = merged.get(name)
        both = isinstance(old, dict) and isinstance(value, dict)
        merged[name] = merge(old, value) if both else value  # type: ignore[arg-type]
    return merged


def layer(wishes: LaunchOptions, preset: Tree) -> Tree:
    """Return what the options of the command line change in a preset."""
    changes: Tree = {"reward_server": _server(wishes, preset), "trainer": _trainer(wishes, preset)}
    if wishes.model is not None:
        changes["actor_rollout_ref"] = {"model": {"path": wishes.model}}
    if wishes.critic is not None:
        changes["critic"] = {"model": {"path": wishes.critic}}
    return changes


def _server(wishes: LaunchOptions, preset: Tree) -> Tree:
    said: Tree = {"url": wishes.server or at(preset, "reward_server.url", HERE)}
    tasks = list(wishes.tasks) or at(preset, "reward_server.tasks") or []
    if tasks:
        said["tasks"] = tasks
    run_id = wishes.run_id or at(preset, "reward_server.run_id") or _name_run(wishes, tasks)
    return {**said, "run_id": run_id}


def _name_run(wishes: LaunchOptions, tasks: list[str]) -> str:
    """Return a name that is the same whenever the same run is started: that resumes it."""
    first = tasks[0] if tasks else "no-task"
    more = f"+{len(tasks) - 1}" if len(tasks) > 1 else ""
    return f"{first}{more}-{Path(wishes.preset).stem}"


def _trainer(wishes: LaunchOptions, preset: Tree) -> Tree:
    said: Tree = {}
    if not at(preset, "trainer.experiment_name"):
        said["experiment_name"] = "${reward_server.run_id}"
    if wishes.loggers:
        said["logger"] = list(wishes.loggers)
    if wishes.is_fresh:
        said["resume_mode"] = "disable"
    if wishes.steps is not None:
        epochs: Any = at(preset, "trainer.total_epochs", 0)
        said["total_training_steps"] = wishes.steps
        said["total_epochs"] = max(epochs, wishes.steps)  # an epoch has one step at least
    if wishes.mode is not None:
        said["v1"] = _mode(wishes.mode)
    return said


def _mode(mode: str) -> Tree:
    """Return a mode with what it cannot do without."""
    is_sync = mode == "sync"
    sampler: Tree = {
        "custom_sampler": {"path": None, "name": None} if is_sync else dict(_BUFFER),
        "sync_refill_failed_groups": is_sync,
    }
    return {"trainer_mode": mode, "sampler": sampler}
