"""The `solutions` commands: list, show, export and import stored solutions."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from reward_server.bootstrap.lifecycle import open_database
from reward_server.cli.console import (
    DEFAULT_URL,
    AsJson,
    DataDir,
    Key,
    Url,
    connect,
    err,
    out,
    show_table,
)
from reward_server.errors import SetupError
from reward_server.settings import Settings, load_settings
from reward_server.store.solutions.files import check_name, reading, writing
from reward_server.store.solutions.paging import SolutionFilter
from reward_server.store.solutions.records import MalformedRecordError

if TYPE_CHECKING:
    from collections.abc import Mapping

File = Annotated[Path, typer.Argument(help="A .jsonl, .jsonl.gz or .parquet file.")]

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
    url: Url = DEFAULT_URL,
    api_key: Key = None,
    as_json: AsJson = False,  # noqa: FBT002 - a flag
) -> None:
    """List solutions, the best, newest or longest first."""
    query = {"task_id": task, "run_id": run, "step": step, "valid": valid, "error_kind": error}
    query |= {"text": text, "order": order, "limit": limit}
    with connect(url, api_key) as client:
        page = client.get("/v1/solutions", **query)
    if as_json:
        out.print_json(json.dumps(page))
        return
    columns = {"solution": "{solution_id}", "task": "{task_id}", "run": "{run_id}"}
    columns |= {"reward": "{reward:.5g}", "score": "{score:.5g}", "milestones": "{passed}"}
    columns |= {"seconds": "{duration_seconds:.2f}", "error": "{error}"}
    show_table(
        (
            line | {"passed": len(line["milestones"]), "error": line["error_kind"] or ""}
            for line in page["solutions"]
        ),
        columns,
    )


@solutions_app.command("show")
def show_solution(
    solution_id: str,
    url: Url = DEFAULT_URL,
    api_key: Key = None,
    as_json: AsJson = False,  # noqa: FBT002 - a flag
) -> None:
    """Show one solution with its code and output."""
    with connect(url, api_key) as client:
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
    async with open_database(settings) as database:
        total = await database.archive.transfer.count(wanted)
        with _progress() as progress, writing(file) as write:
            bar = progress.add_task("exporting", total=total)
            async for page in database.archive.transfer.pages(wanted):
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
    async with open_database(settings) as database:
        with _progress() as progress:
            bar = progress.add_task("importing", total=None)
            for page in reading(file):
                added += await database.archive.transfer.import_records(page)
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
    url: Url = DEFAULT_URL,
    api_key: Key = None,
    as_json: AsJson = False,  # noqa: FBT002 - a flag
) -> None:
    """Show the statistics of a run, step by step."""
    with connect(url, api_key) as client:
        found = client.get(f"/v1/runs/{quote(run, safe='')}/statistics", task_id=task)
    if as_json:
        out.print_json(json.dumps(found))
        return
    for step in found["steps"]:
        step["step"] = "all" if step["is_total"] else str(step["step"])
        step["failures"] = ", ".join(f"{kind} {n}" for kind, n in step["failures"].items())
    columns = {"task": "{task_id}", "step": "{step}", "solutions": "{solutions}"}
    columns |= {"valid": "{share_valid:.0%}", "mean": "{mean_reward:.4g}"}
    columns |= {"best": "{max_reward:.4g}", "p50 s": "{duration_seconds[p50]:.2f}"}
    columns |= {"p95 s": "{duration_seconds[p95]:.2f}", "failures": "{failures}"}
    show_table(found["steps"], columns)


@solutions_app.command("lineage")
def lineage_command(
    solution_id: str, url: Url = DEFAULT_URL, api_key: Key = None, *, as_json: AsJson = False
) -> None:
    """Show the ancestors and descendants of a solution."""
    with connect(url, api_key) as client:
        found = client.get(f"/v1/solutions/{solution_id}/lineage")
    if as_json:
        out.print_json(json.dumps(found))
        return
    columns = {"generation": "{generation:+d}", "solution": "{solution_id}", "step": "{step}"}
    columns |= {"reward": "{reward:.5g}", "change": "{reward_change:+.5g}", "score": "{score:.5g}"}
    show_table(found["lineage"], columns)
