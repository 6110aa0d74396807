"""The `solutions` commands: list, show, export and import stored solutions."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from reward_server.bootstrap.lifecycle import open_archive
from reward_server.errors import SetupError
from reward_server.settings import Settings, load_settings
from reward_server.store.solutions.files import check_name, reading, writing
from reward_server.store.solutions.paging import SolutionFilter
from reward_server.store.solutions.records import MalformedRecordError
from trainer_client import RewardClient

if TYPE_CHECKING:
    from collections.abc import Mapping

out = Console()
err = Console(stderr=True)

File = Annotated[Path, typer.Argument(help="A .jsonl, .jsonl.gz or .parquet file.")]
DataDir = Annotated[Path | None, typer.Option(help="Directory of the data and the database.")]
Url = Annotated[str, typer.Option(help="URL of the server.")]
Key = Annotated[str | None, typer.Option(envvar="REWARD_SERVER_API_KEY", help="API key.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
_DEFAULT_URL = "http://127.0.0.1:8000"
_OUTAGE_SECONDS = 1.0  # an interactive command reports an unreachable server soon

solutions_app = typer.Typer(
    help="Inspect, export and import stored solutions.", no_args_is_help=True
)


def show_answer(answer: Mapping[str, Any]) -> None:
    """Print the answer to a submission."""
    table = Table(show_header=False)
    error = answer["error"]
    table.add_row("status", answer["status"] if not error else f"failed: {error['kind']}")
    table.add_row("reward", f"{answer['reward']:.6g}")
    table.add_row("score", "-" if answer["score"] is None else f"{answer['score']:.6g}")
    table.add_row("milestones", ", ".join(answer["milestones"]) or "-")
    table.add_row("duration", f"{answer['duration_seconds']:.3f} s")
    table.add_row("solution", answer["solution_id"])
    out.print(table)
    for name in ("stdout_tail", "stderr_tail"):
        if answer[name]:
            out.print(f"[bold]{name}[/]\n{escape(answer[name])}")


@solutions_app.command("list")
def list_solutions(  # noqa: PLR0913, PLR0917 - one option a filter
    task: Annotated[str | None, typer.Option(help="Only solutions of this task.")] = None,
    run: Annotated[str | None, typer.Option(help="Only solutions of this run.")] = None,
    step: Annotated[int | None, typer.Option(help="Only solutions of this step.")] = None,
    valid: Annotated[bool | None, typer.Option(help="Only valid or only failed ones.")] = None,
    error: Annotated[str | None, typer.Option(help="Only failures of this kind.")] = None,
    text: Annotated[
        str | None, typer.Option(help="Only solutions whose plan or program contains these words.")
    ] = None,
    order: Annotated[str, typer.Option(help="Sort by reward, time or duration.")] = "reward",
    limit: Annotated[int, typer.Option(help="How many to list.")] = 20,
    url: Url = _DEFAULT_URL,
    api_key: Key = None,
    as_json: AsJson = False,  # noqa: FBT002 - a flag
) -> None:
    """List solutions, the best, newest or longest first."""
    query = {"task_id": task, "run_id": run, "step": step, "valid": valid, "error_kind": error}
    query |= {"text": text, "order": order, "limit": limit}
    with RewardClient(url, api_key, outage_seconds=_OUTAGE_SECONDS) as client:
        page = client.get("/v1/solutions", **query)
    if as_json:
        out.print_json(json.dumps(page))
        return
    table = Table("solution", "task", "run", "reward", "score", "milestones", "seconds", "error")
    for line in page["solutions"]:
        score_text = "-" if line["score"] is None else f"{line['score']:.5g}"
        table.add_row(
            line["solution_id"],
            line["task_id"],
            line["run_id"],
            f"{line['reward']:.5g}",
            score_text,
            str(len(line["milestones"])),
            f"{line['duration_seconds']:.2f}",
            line["error_kind"] or "",
        )
    out.print(table)


@solutions_app.command("show")
def show_solution(
    solution_id: str,
    url: Url = _DEFAULT_URL,
    api_key: Key = None,
    as_json: AsJson = False,  # noqa: FBT002 - a flag
) -> None:
    """Show one solution with its code and output."""
    with RewardClient(url, api_key, outage_seconds=_OUTAGE_SECONDS) as client:
        solution = client.get(f"/v1/solutions/{solution_id}")
    if as_json:
        out.print_json(json.dumps(solution))
        return
    show_answer(solution)
    if solution["standing"]:
        out.print(f"standing {json.dumps(solution['standing'])}")
    out.print(f"[bold]code[/]\n{escape(solution['code'])}")


@solutions_app.command("export")
def export_command(
    file: File,
    task: Annotated[str | None, typer.Option(help="Only solutions of this task.")] = None,
    run: Annotated[str | None, typer.Option(help="Only solutions of this run.")] = None,
    valid: Annotated[bool | None, typer.Option(help="Only valid or only failed ones.")] = None,
    data_dir: DataDir = None,
) -> None:
    """Write whole solutions to a file, with or without a running server."""
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


@solutions_app.command("import")
def import_command(file: File, data_dir: DataDir = None) -> None:
    """Read solutions from a file; existing ones stay unchanged."""
    check_name(file)
    try:
        read, added = asyncio.run(_import(load_settings(data_dir=data_dir), file))
    except (MalformedRecordError, OSError) as error:
        message = f"{file}: {error}; the pages before it were imported"
        raise SetupError(message) from None
    out.print(f"{added} of {read} solutions were added from {escape(str(file))}")


async def _import(settings: Settings, file: Path) -> tuple[int, int]:
    read = added = 0
    async with open_archive(settings) as archive:
        with _progress() as progress:
            bar = progress.add_task("importing", total=None)
            for page in reading(file):
                added += await archive.transfer.import_records(page)
                read += len(page)
                progress.update(bar, completed=read)
    return read, added


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, TimeRemainingColumn(), console=err, transient=True)


@solutions_app.command("statistics")
def statistics_command(
    run: str,
    task: Annotated[str | None, typer.Option(help="Only this task.")] = None,
    url: Url = _DEFAULT_URL,
    api_key: Key = None,
    as_json: AsJson = False,  # noqa: FBT002 - a flag
) -> None:
    """Show the statistics of a run, step by step."""
    with RewardClient(url, api_key, outage_seconds=_OUTAGE_SECONDS) as client:
        found = client.get(f"/v1/runs/{quote(run, safe='')}/statistics", task_id=task)
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


@solutions_app.command("lineage")
def lineage_command(
    solution_id: str, url: Url = _DEFAULT_URL, api_key: Key = None, *, as_json: AsJson = False
) -> None:
    """Show the ancestors and descendants of a solution."""
    with RewardClient(url, api_key, outage_seconds=_OUTAGE_SECONDS) as client:
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
