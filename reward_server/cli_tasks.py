"""The `tasks` part of the command line: offline, on the data directory."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from reward_server.errors import RequestError, SetupError
from reward_server.grade.process import grade_cases, grade_file
from reward_server.settings import PREFIX, Settings, load_settings
from reward_server.tasks.base import Source, TwinSize
from reward_server.tasks.inspection import check_competition, check_task
from reward_server.tasks.preparation import prepare_task
from reward_server.tasks.registry import Refused
from reward_server.tasks.template import write_task
from reward_server.wiring import make_registry

if TYPE_CHECKING:
    from reward_server.tasks.base import Task
    from reward_server.tasks.registry import Registry

tasks_app = typer.Typer(help="Prepare, check and grade tasks.", no_args_is_help=True)
out = Console()
err = Console(stderr=True)

DataDir = Annotated[Path | None, typer.Option(help="Where prepared data lives.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def _open(data_dir: Path | None) -> tuple[Settings, Registry]:
    settings = load_settings(data_dir=data_dir)
    return settings, make_registry(settings)


def _is_prepared(registry: Registry, task_id: str) -> bool:
    return task_id in {task.card.id for task in registry.prepared()}


@tasks_app.command("list")
def list_tasks(data_dir: DataDir = None) -> None:
    """List the known tasks and the state of their data."""
    _, registry = _open(data_dir)
    prepared = {task.card.id: task for task in registry.prepared()}
    table = Table("task", "metric", "better", "data", "digest")
    cards = {card.id: card for card in registry.cards()}
    for card in (cards | {task_id: task.card for task_id, task in prepared.items()}).values():
        task = prepared.get(card.id)
        is_borrowed = registry.is_competition(card.id)
        table.add_row(
            card.id,
            card.metric,
            "higher" if card.higher_is_better else "lower",
            _origin(task, is_borrowed=is_borrowed),
            task.data_digest[:12] if task else "",
        )
    out.print(table)
    for refused in registry.refused():
        out.print(f"[yellow]not served[/] {refused.task_id}: {escape(refused.reason)}")


def _origin(task: Task | None, *, is_borrowed: bool) -> str:
    if task is None:
        return "[dim]not prepared[/]"
    return "MLE-bench" if is_borrowed else task.source.value


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
    if task_id is not None and registry.is_competition(task_id):
        message = f"{task_id} is MLE-bench's to prepare: mlebench prepare -c {task_id}"
        raise SetupError(message)
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
def new(
    task_id: Annotated[str, typer.Argument(help="Lower-case words joined by hyphens.")],
    directory: Annotated[Path | None, typer.Option(help="Where the folder is made.")] = None,
) -> None:
    """Write the folder of a new task that works at once, to be made your own."""
    folders = load_settings().task_folders
    place = directory or next(iter(folders), Path("tasks"))
    folder = write_task(task_id, place)
    out.print(f"[green]written[/] {escape(str(folder))}: its README.md says what to change")
    if place.absolute() not in {path.absolute() for path in folders}:
        known = json.dumps([*map(str, folders), str(place.absolute())])
        out.print(f"export {PREFIX}TASK_FOLDERS='{escape(known)}'", soft_wrap=True)
    out.print(
        f"reward-server tasks prepare {task_id} --twin && reward-server tasks check {task_id}"
    )


@tasks_app.command()
def check(task_id: str, data_dir: DataDir = None) -> None:
    """Verify a task's data: checksums, files, sample submission, leaks."""
    settings, registry = _open(data_dir)
    if registry.is_competition(task_id):
        found = registry.look_at(task_id)
        problems = (found.reason,) if isinstance(found, Refused) else check_competition(found)
    else:
        problems = check_task(registry.folder(task_id), settings.data_dir)
    for problem in problems:
        out.print(f"[red]problem[/] {escape(problem)}")
    if problems:
        raise typer.Exit(1)
    out.print(f"[green]ok[/] {task_id}")


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
    standing = _standing(registry, task_id, found.score, is_own=answers is None)
    if as_json:
        error = None if found.failure is None else found.failure.kind.value
        content = {"valid": found.failure is None, "score": found.score, "error": error}
        typer.echo(json.dumps(content | {"standing": standing}))
    elif found.failure is None:
        out.print(f"score {found.score!r}")
        out.print(f"standing {json.dumps(standing)}")
    else:
        out.print(f"[red]{found.failure.kind}[/] {escape(found.failure.message)}")


def _standing(
    registry: Registry, task_id: str, score: float | None, *, is_own: bool
) -> dict[str, object] | None:
    """Return where a score would have stood; a medal takes the task's own, original data."""
    board = registry.board(task_id)
    if board is None or score is None:
        return None
    is_original = is_own and registry.get(task_id).source is Source.RAW
    return asdict(board.standing(score, wins_medals=is_original))


def _answers(registry: Registry, task_id: str) -> Path:
    try:
        return registry.get(task_id).answers
    except RequestError as error:
        message = f"{error.message}: prepare it, or give --answers FILE"
        raise SetupError(message) from error
