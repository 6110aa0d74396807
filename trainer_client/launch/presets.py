"""The configuration of a run: a preset, then options, then `KEY=VALUE` overrides."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer_client.client.options import DEFAULT_URL
from trainer_client.integrations.verl.findings import Tree, at

FOLDER = Path(__file__).parent / "presets"
DEFAULT = "a100x8"
_BUFFER = {
    "path": "pkg://trainer_client.integrations.verl.buffer",
    "name": "CancellingReplayBuffer",
}


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """The options of the command line; None where it sets nothing."""

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
    """Merge two trees; the second wins."""
    merged = dict(below)
    for name, value in above.items():
        old = merged.get(name)
        both = isinstance(old, dict) and isinstance(value, dict)
        merged[name] = merge(old, value) if both else value  # type: ignore[arg-type]
    return merged


def layer(options: LaunchOptions, preset: Tree) -> Tree:
    """Return the changes of the command line to a preset."""
    changes: Tree = {
        "reward_server": _server(options, preset),
        "trainer": _trainer(options, preset),
    }
    if options.model is not None:
        changes["actor_rollout_ref"] = {"model": {"path": options.model}}
    if options.critic is not None:
        changes["critic"] = {"model": {"path": options.critic}}
    return changes


def _server(options: LaunchOptions, preset: Tree) -> Tree:
    changes: Tree = {"url": options.server or at(preset, "reward_server.url", DEFAULT_URL)}
    tasks = list(options.tasks) or at(preset, "reward_server.tasks") or []
    if tasks:
        changes["tasks"] = tasks
    run_id = options.run_id or at(preset, "reward_server.run_id") or _name_run(options, tasks)
    return {**changes, "run_id": run_id}


def _name_run(options: LaunchOptions, tasks: list[str]) -> str:
    """Return the same name whenever the same run is started, so that it resumes."""
    first = tasks[0] if tasks else "no-task"
    more = f"+{len(tasks) - 1}" if len(tasks) > 1 else ""
    return f"{first}{more}-{Path(options.preset).stem}"


def _trainer(options: LaunchOptions, preset: Tree) -> Tree:
    changes: Tree = {}
    if not at(preset, "trainer.experiment_name"):
        changes["experiment_name"] = "${reward_server.run_id}"
    if options.loggers:
        changes["logger"] = list(options.loggers)
    if options.is_fresh:
        changes["resume_mode"] = "disable"
    if options.steps is not None:
        epochs: Any = at(preset, "trainer.total_epochs", 0)
        changes["total_training_steps"] = options.steps
        changes["total_epochs"] = max(epochs, options.steps)  # an epoch has at least one step
    if options.mode is not None:
        changes["v1"] = _mode(options.mode)
    return changes


def _mode(mode: str) -> Tree:
    """Return a mode with the settings that it requires."""
    is_sync = mode == "sync"
    sampler: Tree = {
        "custom_sampler": {"path": None, "name": None} if is_sync else dict(_BUFFER),
        "sync_refill_failed_groups": is_sync,
    }
    return {"trainer_mode": mode, "sampler": sampler}
