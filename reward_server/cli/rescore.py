"""The `rescore` command: rewards of stored solutions under another scheme."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import Progress

from reward_server.bootstrap.implementations import make_registry, make_scheme
from reward_server.bootstrap.lifecycle import open_database
from reward_server.cli.console import DataDir, err, out, show_table
from reward_server.rescoring import Tallies, rescore
from reward_server.settings import (
    NormalisedSettings,
    PaperSettings,
    PercentileSettings,
    Settings,
    load_settings,
)
from reward_server.store.values import OutcomeFilter

if TYPE_CHECKING:
    from reward_server.rescoring import TaskTally
    from reward_server.reward.base import Scheme
    from reward_server.settings import RewardSettings


class SchemeName(StrEnum):
    """The names of the reward schemes."""

    PAPER = "paper"
    NORMALISED = "normalised"
    PERCENTILE = "percentile"


_DEFAULTS: dict[SchemeName, RewardSettings] = {
    SchemeName.PAPER: PaperSettings(),
    SchemeName.NORMALISED: NormalisedSettings(),
    SchemeName.PERCENTILE: PercentileSettings(),
}


def rescore_command(
    scheme: Annotated[SchemeName, typer.Option(help="The scheme of the new rewards.")],
    task: Annotated[str | None, typer.Option(help="Only solutions of this task.")] = None,
    run: Annotated[str | None, typer.Option(help="Only solutions of this run.")] = None,
    data_dir: DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, a line per task.")] = False,  # noqa: FBT002
) -> None:
    """Compute the rewards of stored solutions under another scheme, without running them again.

    Works with or without a running server. The rewards in the answers do not change.
    """
    settings = load_settings(data_dir=data_dir)
    chosen = make_scheme(_settings_of(settings, scheme))
    tallies = asyncio.run(_rescore(settings, chosen, OutcomeFilter(task, run)))
    lines = [tallies[task_id] for task_id in sorted(tallies)]
    if as_json:
        about = {"scheme": chosen.name, "scheme_version": chosen.version}
        for tally in lines:
            typer.echo(json.dumps(about | asdict(tally)))
    else:
        _show(lines, chosen)


def _settings_of(settings: Settings, scheme: SchemeName) -> RewardSettings:
    """Return the settings of a scheme: the configured ones if it is in use, else the defaults."""
    return settings.reward if settings.reward.kind == scheme else _DEFAULTS[scheme]


async def _rescore(settings: Settings, scheme: Scheme, wanted: OutcomeFilter) -> Tallies:
    registry = make_registry(settings)
    tallies: Tallies = {}
    async with open_database(settings) as database:
        number = await database.store.count_outcomes(wanted)
        with Progress(console=err, transient=True) as progress:
            bar = progress.add_task(f"rescoring by {scheme.name}", total=number)
            async for tallies in rescore(database.store, registry, scheme, wanted):
                done = sum(tally.rescored + tally.skipped for tally in tallies.values())
                progress.update(bar, completed=done)
    return tallies


def _show(lines: list[TaskTally], scheme: Scheme) -> None:
    if not lines:
        out.print("there are no such solutions")
        return
    columns = {"task": "{task_id}", "rescored": "{rescored}", "mean before": "{mean_before:.5g}"}
    columns |= {f"mean by {scheme.name}": "{mean_after:.5g}", "skipped": "{skipped}"}
    show_table(map(asdict, lines), columns)
    skipped = sum(tally.skipped for tally in lines)
    if skipped:
        text = f"{skipped} skipped: they were scored on data that is not prepared here now"
        out.print(f"[yellow]note[/] {text}")
