"""`python -m trainer_client.launch`: compose, check, look around, and become veRL."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from trainer_client.client.blocking import RewardClient
from trainer_client.client.errors import RewardServerError
from trainer_client.integrations.verl.findings import at, flatten
from trainer_client.launch import presets, table3
from trainer_client.launch.combinations import LOGGERS, MODES, check_combinations
from trainer_client.launch.command import become, make_command
from trainer_client.launch.preflight import (
    Check,
    PreflightReport,
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
_ASKED = "asked for on the command line"
_PATIENCE_SECONDS = 60.0


def main(words: Sequence[str] | None = None) -> int:
    """Start a run, or say why not; 2 is the answer to a configuration that cannot run."""
    wishes, given = read_wishes(words)
    try:
        composed = compose(wishes)
    except ModuleNotFoundError as error:
        return _refuse(f"{error}: this is not the trainer's environment; see docs/verl.md")
    except ValueError as error:
        return _refuse(str(error))
    if given.dry_run and composed.tree:
        _compare(composed.tree, _reasons(wishes))
    problems = _report(composed)
    if problems:
        _say(f"\n{len(problems)} problem{'s' * (len(problems) > 1)}; nothing was started")
        return WRONG
    command = make_command(composed.tree, composed.overrides)
    if given.dry_run:
        _say("\nThe command, with REWARD_SERVER_API_KEY in the environment if the server wants it:")
        _say("\n".join(command.show()))
        return 0
    if not _look_around(composed.tree, command, is_fresh=given.fresh):
        return WRONG
    return become(command)


def compose(wishes: LaunchOptions) -> ComposedConfig:
    """Return the configuration of a run with all that is wrong with it.

    Raises:
        ValueError: when the preset or an override cannot be read.
    """
    from trainer_client.integrations.verl import configuration  # noqa: PLC0415 - veRL is wanted from here on

    preset = configuration.read_preset(presets.find(wishes.preset))
    tree = presets.merge(preset, presets.layer(wishes, preset))
    tree = presets.merge(tree, configuration.read_overrides(list(wishes.overrides)))
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
    add("--model", help="the policy: a folder, or a name of the hub")
    add("--critic", help="the critic, where it is another model")
    add("--loggers", help=f"some of {','.join(LOGGERS)}")
    add("--steps", type=int, help="how many steps")
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--resume", action="store_true", help="go on from a checkpoint (default)")
    way.add_argument("--fresh", action="store_true", help="refuse a run that exists already")
    add("--dry-run", action="store_true", help="compose, check, compare with Table 3, and stop")
    add("--set", action="append", default=[], metavar="KEY=VALUE", dest="sets")
    add("overrides", nargs="*", metavar="KEY=VALUE", help="anything of veRL's configuration")
    return parser


def read_wishes(words: Sequence[str] | None) -> tuple[LaunchOptions, argparse.Namespace]:
    """Return what the command line says about the run, and all that it says."""
    given = _parser().parse_intermixed_args(words)
    model, critic = (_absolute(path) for path in (given.model, given.critic))
    wishes = LaunchOptions(
        preset=given.preset,
        server=given.server,
        tasks=tuple(given.tasks),
        run_id=given.run_id,
        mode=given.mode,
        model=model,
        critic=critic,
        loggers=tuple(given.loggers.split(",")) if given.loggers else (),
        steps=given.steps,
        is_fresh=given.fresh,
        overrides=(*given.sets, *given.overrides),
    )
    return wishes, given


def _absolute(path: str | None) -> str | None:
    """Return a folder's full path, as Ray's processes may work elsewhere; a hub's name stays."""
    return str(Path(path).resolve()) if path and Path(path).exists() else path


def _report(composed: ComposedConfig) -> list[ConfigFinding]:
    for finding in composed.findings:
        _say(f"{'ERROR' if finding.severity == 'error' else 'hint '}  {finding}")
    return [finding for finding in composed.findings if finding.severity == "error"]


def _compare(tree: Tree, reasons: Mapping[str, str]) -> None:
    comparisons = table3.compare(tree)
    _say("\n".join(table3.show(comparisons)))
    _say("\nNotes:")
    _say("\n".join(f"  {one.row.name}: {one.row.note}" for one in comparisons if one.row.note))
    differences = table3.explain(comparisons, reasons)
    said = sum(one.is_same is not None for one in comparisons)
    _say(f"\n{said - len(differences)} of {said} values are those of the paper")
    if differences:
        _say("\n".join(differences))
    _say("")


def _look_around(tree: Tree, command: LaunchCommand, *, is_fresh: bool) -> bool:
    """Make every check, print its line, and tell whether the run may start."""
    fine = True
    settings = RunSettings.read(tree[NODE])
    with RewardClient(
        settings.url,
        os.environ.get(API_KEY),
        deadline_seconds=_PATIENCE_SECONDS,
        outage_seconds=0.0,
    ) as client:
        flight = PreflightReport(tree, settings, client, is_fresh)
        for check in _checks(flight, command):
            _say(str(check))
            fine = fine and check.state != "problem"
    return fine


def _checks(flight: PreflightReport, command: LaunchCommand) -> Iterator[Check]:
    yield from check_environment(flight.tree, command.environment())
    server = list(check_server(flight))
    yield from server
    if any(check.state == "problem" for check in server):
        return
    try:
        yield from check_run(flight)
    except RewardServerError as error:
        yield Check("run", "problem", str(error))
    yield from check_prompts(flight, lambda: _counter(flight.tree))


def _counter(tree: Tree) -> Count:
    from trainer_client.integrations.verl.configuration import count_tokens  # noqa: PLC0415 - wants veRL

    model = at(tree, "actor_rollout_ref.model")
    return count_tokens(
        str(model.get("tokenizer_path") or model["path"]),
        bool(model.get("trust_remote_code")),
        at(tree, "data.apply_chat_template_kwargs") or {},
    )


def _reasons(wishes: LaunchOptions) -> dict[str, str]:
    """Return why a run's values are what they are, by their keys."""
    from trainer_client.integrations.verl import configuration  # noqa: PLC0415 - wants veRL

    file = presets.find(wishes.preset)
    options = presets.layer(wishes, configuration.read_preset(file))
    asked = presets.merge(options, configuration.read_overrides(list(wishes.overrides)))
    return {**configuration.read_reasons(file), **dict.fromkeys(flatten(asked), _ASKED)}


def _refuse(reason: str) -> int:
    sys.stderr.write(f"{reason}\n")
    return WRONG


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
