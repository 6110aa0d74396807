"""`python -m trainer_client.launch`: compose, check, and exec veRL."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from trainer_client.client.blocking import RewardClient
from trainer_client.client.errors import RewardServerError
from trainer_client.integrations.verl.findings import at, flatten
from trainer_client.launch import presets, table3
from trainer_client.launch.combinations import LOGGERS, MODES, check_combinations
from trainer_client.launch.command import exec_command, make_command
from trainer_client.launch.preflight import (
    Check,
    PlannedRun,
    check_environment,
    check_prompts,
    check_run,
    check_server,
)
from trainer_client.launch.presets import LaunchOptions
from trainer_client.run import API_KEY
from trainer_client.settings import NODE, RunSettings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from trainer_client.integrations.verl.configuration import ComposedConfig
    from trainer_client.integrations.verl.findings import ConfigFinding, Tree
    from trainer_client.launch.command import LaunchCommand
    from trainer_client.launch.prompt_lengths import Count

WRONG = 2
_ON_COMMAND_LINE = "asked for on the command line"
_CHECK_SECONDS = 60.0


def main(words: Sequence[str] | None = None) -> int:
    """Start a run, or say why not; return 2 for a configuration that cannot run."""
    options, given = read_options(words)
    try:
        composed = compose(options)
    except ModuleNotFoundError as error:
        return _refuse(f"{error}: this is not the trainer's environment; see docs/verl.md")
    except ValueError as error:
        return _refuse(str(error))
    if given.dry_run and composed.tree:
        _compare(composed.tree, _reasons(options))
    problems = _report(composed)
    if problems:
        _print(f"\n{len(problems)} problem{'s' * (len(problems) > 1)}; nothing was started")
        return WRONG
    command = make_command(composed.tree, composed.overrides)
    if given.dry_run:
        _print(
            "\nThe command, with REWARD_SERVER_API_KEY in the environment if the server wants it:"
        )
        _print("\n".join(command.show()))
        return 0
    if not _run_preflight(composed.tree, command, is_fresh=given.is_fresh):
        return WRONG
    return exec_command(command)


def compose(options: LaunchOptions) -> ComposedConfig:
    """Return the configuration of a run with all findings.

    Raises:
        ValueError: the preset or an override cannot be read.
    """
    from trainer_client.integrations.verl import configuration  # noqa: PLC0415 - needs veRL

    preset = configuration.read_preset(presets.find(options.preset))
    tree = presets.merge(preset, presets.layer(options, preset))
    tree = presets.merge(tree, configuration.read_overrides(list(options.overrides)))
    composed = configuration.compose_run(flatten(tree))
    found = check_combinations(composed.tree) if composed.tree else []
    return configuration.ComposedConfig(
        composed.tree, composed.overrides, (*composed.findings, *found)
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m trainer_client.launch",
        description="Train with veRL and a reward server.",
        epilog=f"The server's key is read from {API_KEY}.",
    )
    add = parser.add_argument
    add("--preset", default=presets.DEFAULT, help=f"{', '.join(presets.names())}, or a file")
    add("--task", action="append", default=[], dest="tasks", help="may be given several times")
    add("--server", metavar="URL", help="the reward server (http://127.0.0.1:8000)")
    add("--run-id", help="the same name resumes (TASK-PRESET)")
    add("--mode", choices=MODES)
    add("--model", type=_absolute, help="the policy: a folder, or a name of the hub")
    add("--critic", type=_absolute, help="the critic, where it is another model")
    add("--loggers", type=_names, default=(), help=f"some of {','.join(LOGGERS)}")
    add("--steps", type=int, help="how many steps")
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--resume", action="store_true", help="go on from a checkpoint (default)")
    way.add_argument(
        "--fresh", action="store_true", dest="is_fresh", help="refuse a run that exists already"
    )
    add("--dry-run", action="store_true", help="compose, check, compare with Table 3, and stop")
    add("--set", action="append", default=[], metavar="KEY=VALUE", dest="sets")
    add("overrides", nargs="*", metavar="KEY=VALUE", help="anything of veRL's configuration")
    return parser


def read_options(words: Sequence[str] | None) -> tuple[LaunchOptions, argparse.Namespace]:
    """Return the options of the run, and the whole command line."""
    given = _parser().parse_intermixed_args(words)
    given.overrides = (*given.sets, *given.overrides)
    given.tasks = tuple(given.tasks)
    options = LaunchOptions(**{one.name: getattr(given, one.name) for one in fields(LaunchOptions)})
    return options, given


def _absolute(path: str) -> str:
    """Make a folder's path absolute: Ray's processes may have another working directory."""
    return str(Path(path).resolve()) if path and Path(path).exists() else path


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


def _report(composed: ComposedConfig) -> list[ConfigFinding]:
    for finding in composed.findings:
        _print(f"{'ERROR' if finding.severity == 'error' else 'hint '}  {finding}")
    return [finding for finding in composed.findings if finding.severity == "error"]


def _compare(tree: Tree, reasons: Mapping[str, str]) -> None:
    comparisons = table3.compare(tree)
    _print("\n".join(table3.show(comparisons)))
    _print("\nNotes:")
    _print("\n".join(f"  {one.row.name}: {one.row.note}" for one in comparisons if one.row.note))
    differences = table3.explain(comparisons, reasons)
    compared = sum(one.is_same is not None for one in comparisons)
    _print(f"\n{compared - len(differences)} of {compared} values are those of the paper")
    if differences:
        _print("\n".join(differences))
    _print("")


def _run_preflight(tree: Tree, command: LaunchCommand, *, is_fresh: bool) -> bool:
    """Run and print all preflight checks, and tell whether the run may start."""
    fine = True
    settings = RunSettings.read(tree[NODE])
    with RewardClient(
        settings.url,
        os.environ.get(API_KEY),
        deadline_seconds=_CHECK_SECONDS,
        outage_seconds=0.0,
    ) as client:
        planned = PlannedRun(tree, settings, client, is_fresh)
        for check in _checks(planned, command):
            _print(str(check))
            fine = fine and check.state != "problem"
    return fine


def _checks(planned: PlannedRun, command: LaunchCommand) -> Iterator[Check]:
    yield from check_environment(planned.tree, command.environment())
    server = list(check_server(planned))
    yield from server
    if any(check.state == "problem" for check in server):
        return
    try:
        yield from check_run(planned)
    except RewardServerError as error:
        yield Check("run", "problem", str(error))
    yield from check_prompts(planned, lambda: _counter(planned.tree))


def _counter(tree: Tree) -> Count:
    from trainer_client.integrations.verl.configuration import count_tokens  # noqa: PLC0415 - needs veRL

    model = at(tree, "actor_rollout_ref.model")
    return count_tokens(
        str(model.get("tokenizer_path") or model["path"]),
        bool(model.get("trust_remote_code")),
        at(tree, "data.apply_chat_template_kwargs") or {},
    )


def _reasons(options: LaunchOptions) -> dict[str, str]:
    """Return the reasons for a run's values, by key."""
    from trainer_client.integrations.verl import configuration  # noqa: PLC0415 - needs veRL

    file = presets.find(options.preset)
    changes = presets.layer(options, configuration.read_preset(file))
    changes = presets.merge(changes, configuration.read_overrides(list(options.overrides)))
    return {**configuration.read_reasons(file), **dict.fromkeys(flatten(changes), _ON_COMMAND_LINE)}


def _refuse(reason: str) -> int:
    sys.stderr.write(f"{reason}\n")
    return WRONG


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
