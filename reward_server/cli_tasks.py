"""The `tasks` part of the command line: offline, on the data directory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from reward_server.errors import RequestError, SetupError
from reward_server.grade.process import grade_cases, grade_file
from reward_server.settings import Settings, load_settings
from reward_server.tasks.base import TwinSize  # noqa: TC001 -- typer reads the options' types
from reward_server.tasks.inspection import inspect_task
from reward_server.tasks.preparation import prepare_task
from reward_server.tasks.registry import Registry

tasks_app = typer.Typer(help="Prepare, check and grade tasks.", no_args_is_help=True)
out = Console()
err = Console(stderr=True)

DataDir = Annotated[Path | None, typer.Option(help="Where prepared data lives.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def _open(data_dir: Path | None) -> tuple[Settings, Registry]:
    settings = load_settings(data_dir=data_dir)
    return settings, Registry(settings.data_dir, settings.task_folders)


def _is_prepared(registry: Registry, task_id: str) -> bool:
    return task_id in {task.card.id for task in registry.prepared()}


@tasks_app.command("list")
def list_tasks(data_dir: DataDir = None) -> None:
    """List the known tasks and the state of their data."""
    _, registry = _open(data_dir)
    prepared = {task.card.id: task for task in registry.prepared()}
    table = Table("task", "metric", "better", "data", "digest")
    for card in registry.cards():
        task = prepared.get(card.id)
        table.add_row(
            card.id,
            card.metric,
            "higher" if card.higher_is_better else "lower",
            task.source.value if task else "[dim]not prepared[/]",
            task.data_digest[:12] if task else "",
        )
    out.print(table)


@tasks_app.command()
def prepare(  # noqa: PLR0913, PLR0917 - one option a part of the question
    task_id: Annotated[str | None, typer.Argument(help="The task to prepare.")] = None,
    twin: Annotated[bool, typer.Option("--twin", help="Make a synthetic twin.")] = False,  # noqa: FBT002
    raw: Annotated[Path | None, typer.Option(help="Folder with Kaggle's raw files.")] = None,
    missing: Annotated[bool, typer.Option("--missing", help="All that are not there.")] = False,  # noqa: FBT002
    size: Annotated[TwinSize | None, typer.Option(help="How large a twin is made.")] = None,
    data_dir: DataDir = None,
) -> None:
    """Prepare a task's data, from a twin or from Kaggle's files."""
    if twin == (raw is not None):
        raise typer.BadParameter("give either --twin or --raw DIR")  # noqa: TRY003, EM101
    if missing == (task_id is not None) or (missing and raw):
        raise typer.BadParameter("give a task, or --missing with --twin")  # noqa: TRY003, EM101
    settings, registry = _open(data_dir)
    names = [card.id for card in registry.cards() if not _is_prepared(registry, card.id)]
    for name in names if task_id is None else [task_id]:
        with err.status(f"preparing {name}") as status:
            prepare_task(
                registry.folder(name),
                settings.data_dir,
                raw=raw,
                size=size or settings.twin_size,
                progress=lambda text, status=status: status.update(escape(text)),  # type: ignore[misc]
            )
        err.print(f"[green]prepared[/] {name}")


@tasks_app.command()
def check(
    task_ids: Annotated[list[str] | None, typer.Argument(help="All prepared ones if none.")] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Verify tasks' data: checksums, files, leaks, sample submission, bundled data."""
    settings, registry = _open(data_dir)
    names = task_ids or [task.card.id for task in registry.prepared()]
    environment = getattr(settings.sandbox, "environment", None)
    reports = []
    for name in names:
        with err.status(f"checking {name}"):
            report = inspect_task(registry.folder(name), settings.data_dir, environment)
        reports.append(report)
        for line in () if as_json else report.as_lines():
            out.print(escape(line), highlight=False, soft_wrap=True)
    if as_json:
        typer.echo(json.dumps([report.as_json() for report in reports], indent=1))
    if any(report.failures for report in reports):
        raise typer.Exit(1)


@tasks_app.command()
def grade(  # noqa: PLR0913, PLR0917 - one option a part of the question
    task_id: Annotated[str | None, typer.Argument(help="The task the file is for.")] = None,
    submission: Annotated[Path | None, typer.Option(help="The file to grade.")] = None,
    answers: Annotated[Path | None, typer.Option(help="Other answers than the task's.")] = None,
    cases: Annotated[Path | None, typer.Option(help="A folder of case folders.")] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Grade a file, or every case folder below a folder, offline."""
    settings, registry = _open(data_dir)
    if cases is not None:
        if not cases.is_dir():
            message = f"there is no folder {cases}"
            raise SetupError(message)
        for case in grade_cases(cases, settings.task_folders):
            typer.echo(json.dumps(case))
        return
    if task_id is None or submission is None:
        raise typer.BadParameter("give a task and --submission FILE, or --cases DIR")  # noqa: TRY003, EM101
    found = grade_file(registry.folder(task_id), submission, answers or _answers(registry, task_id))
    if as_json:
        error = None if found.failure is None else found.failure.kind.value
        content = {"valid": found.failure is None, "score": found.score, "error": error}
        typer.echo(json.dumps(content))
    elif found.failure is None:
        out.print(f"score {found.score!r}")
    else:
        out.print(f"[red]{found.failure.kind}[/] {escape(found.failure.message)}")


def _answers(registry: Registry, task_id: str) -> Path:
    try:
        return registry.get(task_id).answers
    except RequestError as error:
        message = f"{error.message}: prepare it, or give --answers FILE"
        raise SetupError(message) from error
