"""Commands that look at the solution store as a whole: export, import, statistics, lineage."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from reward_server.errors import SetupError
from reward_server.opening import open_archive
from reward_server.settings import Settings, load_settings
from reward_server.solution_files import check_name, reading, writing
from reward_server.store.paging import SolutionFilter
from reward_server.store.records import MalformedRecordError
from trainer_client.client import RewardClient

out = Console()
err = Console(stderr=True)

File = Annotated[Path, typer.Argument(help="A .jsonl, .jsonl.gz or .parquet file.")]
DataDir = Annotated[Path | None, typer.Option(help="Where data and the database live.")]
Url = Annotated[str, typer.Option(help="The server to ask.")]
Key = Annotated[str | None, typer.Option(envvar="REWARD_SERVER_API_KEY", help="API key.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
_HERE = "http://127.0.0.1:8000"


def export_command(
    file: File,
    task: Annotated[str | None, typer.Option(help="Only solutions of this task.")] = None,
    run: Annotated[str | None, typer.Option(help="Only solutions of this run.")] = None,
    valid: Annotated[bool | None, typer.Option(help="Only (in)valid ones.")] = None,
    data_dir: DataDir = None,
) -> None:
    """Write whole solutions to a file. Works beside a running server and without one."""
    check_name(file)
    wanted = SolutionFilter(task_id=task, run_id=run, valid=valid)
    number = asyncio.run(_export(load_settings(data_dir=data_dir), file, wanted))
    out.print(f"{number} solutions were written to {escape(str(file))}")


async def _export(settings: Settings, file: Path, wanted: SolutionFilter) -> int:
    done = 0
    async with open_archive(settings) as archive:
        total = await archive.transfer.count(wanted)
        with _progress() as progress, writing(file) as write:
            bar = progress.add_task("exporting", total=total)
            async for page in archive.transfer.pages(wanted):
                write(page)
                done += len(page)
                progress.update(bar, completed=done)
    return done


def import_command(file: File, data_dir: DataDir = None) -> None:
    """Read solutions from a file; what is there already stays as it is."""
    check_name(file)
    try:
        read, added = asyncio.run(_import(load_settings(data_dir=data_dir), file))
    except (MalformedRecordError, OSError) as error:
        message = f"{file}: {error}; pages before that are in the store"
        raise SetupError(message) from None
    out.print(f"{added} of {read} solutions were added from {escape(str(file))}")


async def _import(settings: Settings, file: Path) -> tuple[int, int]:
    read = added = 0
    async with open_archive(settings) as archive:
        with _progress() as progress:
            bar = progress.add_task("importing", total=None)
            for page in reading(file):
                added += await archive.transfer.take_in(page)
                read += len(page)
                progress.update(bar, completed=read)
    return read, added


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, TimeRemainingColumn(), console=err, transient=True)


def statistics_command(
    run: str,
    task: Annotated[str | None, typer.Option(help="Only this task.")] = None,
    url: Url = _HERE,
    api_key: Key = None,
    as_json: AsJson = False,  # noqa: FBT002 - a flag
) -> None:
    """Show what a run has come to, step by step."""
    with RewardClient(url, api_key) as client:
        found = client.get(f"/v1/runs/{run}/statistics", task_id=task)
    if as_json:
        out.print_json(json.dumps(found))
        return
    table = Table(
        "task", "step", "solutions", "valid", "mean", "best", "p50 s", "p95 s", "failures"
    )
    for step in found["steps"]:
        table.add_row(*_cells(step))
    out.print(table)


def _cells(step: dict[str, Any]) -> list[str]:
    name = "all" if step["is_total"] else str(step["step"])
    durations = step["duration_seconds"]
    return [
        escape(step["task_id"]),
        name,
        str(step["solutions"]),
        f"{step['share_valid']:.0%}",
        f"{step['mean_reward']:.4g}",
        f"{step['max_reward']:.4g}",
        f"{durations['p50']:.2f}",
        f"{durations['p95']:.2f}",
        ", ".join(f"{kind} {number}" for kind, number in step["failures"].items()),
    ]


def lineage_command(
    solution_id: str, url: Url = _HERE, api_key: Key = None, *, as_json: AsJson = False
) -> None:
    """Show where a solution comes from and what became of it."""
    with RewardClient(url, api_key) as client:
        found = client.get(f"/v1/solutions/{solution_id}/lineage")
    if as_json:
        out.print_json(json.dumps(found))
        return
    table = Table("generation", "solution", "step", "reward", "change", "score")
    for one in found["lineage"]:
        change, score = one["reward_change"], one["score"]
        table.add_row(
            f"{one['generation']:+d}",
            one["solution_id"],
            "-" if one["step"] is None else str(one["step"]),
            f"{one['reward']:.5g}",
            "-" if change is None else f"{change:+.5g}",
            "-" if score is None else f"{score:.5g}",
        )
    out.print(table)
