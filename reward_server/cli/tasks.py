"""The `tasks` commands: they work offline, on the data directory."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from reward_server.bootstrap.implementations import make_briefings, make_registry
from reward_server.cli.console import AsJson, err, out
from reward_server.cli.preparation_progress import showing_steps
from reward_server.errors import RequestError, SetupError
from reward_server.grade.process import grade_all, grade_cases, grade_file
from reward_server.settings import PREFIX, Settings, load_settings
from reward_server.tasks.base import Source, TwinSize
from reward_server.tasks.briefing.briefings import DEFAULT_BUDGET, MIN_BUDGET
from reward_server.tasks.catalog.template import write_task
from reward_server.tasks.folders import find_folders
from reward_server.tasks.manifest import Manifest, read_manifest
from reward_server.tasks.preparation.parallel import prepare_twins
from reward_server.tasks.preparation.prepare import find_unchanged, prepare_task
from reward_server.tasks.registry import RefusedCompetition

if TYPE_CHECKING:
    from reward_server.tasks.leaks.report import LeakReport
    from reward_server.tasks.registry import Registry

tasks_app = typer.Typer(help="Prepare, check and grade tasks.", no_args_is_help=True)

DataDir = Annotated[Path | None, typer.Option(help="Directory of the prepared data.")]


def _open(data_dir: Path | None) -> tuple[Settings, Registry]:
    settings = load_settings(data_dir=data_dir)
    return settings, make_registry(settings)


def _read_prepared(settings: Settings, task_id: str) -> Manifest | None:
    try:
        return read_manifest(settings.data_dir / task_id / "prepared")
    except SetupError:
        return None


@tasks_app.command("list")
def list_tasks(data_dir: DataDir = None) -> None:
    """List the known tasks and the state of their data."""
    settings, registry = _open(data_dir)
    table = Table("task", "metric", "better", "data", "rows", "digest")
    for card in registry.cards():
        made = _read_prepared(settings, card.id)
        table.add_row(
            card.id,
            card.metric,
            "higher" if card.higher_is_better else "lower",
            _describe_source(made) if made else "[dim]not prepared[/]",
            f"{made.rows:,}" if made and made.rows else "",
            made.data_digest[:12] if made else "",
        )
    for task in registry.prepared():
        if registry.is_competition(task.card.id):
            direction = "higher" if task.card.higher_is_better else "lower"
            about = task.card.id, task.card.metric, direction
            table.add_row(*about, "MLE-bench", "", task.data_digest[:12])
    out.print(table)
    for refused in registry.refused():
        out.print(f"[yellow]not served[/] {refused.task_id}: {escape(refused.reason)}")


def _describe_source(made: Manifest) -> str:
    return made.source.value if made.size is None else f"{made.size} {made.source}"


@tasks_app.command()
def prepare(  # noqa: PLR0913, PLR0917 - one option a part of the question
    task_id: Annotated[str | None, typer.Argument(help="The task to prepare.")] = None,
    twin: Annotated[bool, typer.Option("--twin", help="Make a synthetic twin.")] = False,  # noqa: FBT002
    raw: Annotated[Path | None, typer.Option(help="Folder with the raw files from Kaggle.")] = None,
    missing: Annotated[bool, typer.Option("--missing", help="All tasks without data.")] = False,  # noqa: FBT002
    force: Annotated[bool, typer.Option("--force", help="Prepare unchanged data again.")] = False,  # noqa: FBT002
    size: Annotated[TwinSize | None, typer.Option(help="Size of the twin.")] = None,
    data_dir: DataDir = None,
) -> None:
    """Prepare a task's data, from a twin or from Kaggle's files.

    Data that was prepared from the same files (or as a twin of the same size) by the same
    version of the task, and is undamaged, is left as it is; --force replaces it, a twin by one
    with another secret seed. Anything else is replaced when the new data is complete. What a
    killed preparation had completed is used by the next one.
    """
    if twin == (raw is not None):
        raise typer.BadParameter("give either --twin or --raw DIR")  # noqa: TRY003, EM101
    if missing == (task_id is not None) or (missing and (raw or force)):
        raise typer.BadParameter("give a task, or --missing with --twin")  # noqa: TRY003, EM101
    if size is not None and raw:
        raise typer.BadParameter("only a twin has a --size")  # noqa: TRY003, EM101
    settings, registry = _open(data_dir)
    if task_id is not None and registry.is_competition(task_id):
        message = f"{task_id} is MLE-bench's to prepare: mlebench prepare -c {task_id}"
        raise SetupError(message)
    wanted = size or settings.twin_size
    if task_id is None:
        _prepare_missing(settings, registry, wanted)
        return
    folder, data_dir = registry.folder(task_id), settings.data_dir
    unchanged = None if force else find_unchanged(folder, data_dir, raw=raw, size=wanted)
    if unchanged is not None:
        err.print(f"[green]unchanged[/] {task_id} is prepared already; --force does it again")
        return
    with showing_steps(err) as progress:
        prepare_task(folder, data_dir, raw=raw, size=wanted, progress=progress)


def _prepare_missing(settings: Settings, registry: Registry, size: TwinSize) -> None:
    names = [card.id for card in registry.cards() if _read_prepared(settings, card.id) is None]
    folders = {name: registry.folder(name) for name in names}
    with showing_steps(err, len(names)) as progress:
        failures = prepare_twins(folders, settings.data_dir, size, progress)
    for failure in failures:
        err.print(f"[red]failed[/] {failure.task_id}: {escape(failure.reason)}")
    if failures:
        raise typer.Exit(1)


@tasks_app.command()
def show(
    task_id: str,
    budget: Annotated[
        int, typer.Option(help=f"Budget in characters, at least {MIN_BUDGET}.")
    ] = DEFAULT_BUDGET,
    data_dir: DataDir = None,
) -> None:
    """Print the briefing on a prepared task that a model gets."""
    settings, registry = _open(data_dir)
    typer.echo(make_briefings(settings).get(registry.get(task_id), budget), nl=False)


@tasks_app.command()
def new(
    task_id: Annotated[str, typer.Argument(help="Lower-case words joined by hyphens.")],
    directory: Annotated[
        Path | None, typer.Option(help="Parent directory of the new folder.")
    ] = None,
) -> None:
    """Write the folder of a new task that works at once, to be made your own."""
    folders = load_settings().task_folders
    parent = directory or next(iter(folders), Path("tasks"))
    folder = write_task(task_id, parent)
    out.print(f"[green]written[/] {escape(str(folder))}: its README.md says what to change")
    if parent.absolute() not in {path.absolute() for path in folders}:
        known = json.dumps([*map(str, folders), str(parent.absolute())])
        out.print(f"export {PREFIX}TASK_FOLDERS='{escape(known)}'", soft_wrap=True)
    out.print(
        f"reward-server tasks prepare {task_id} --twin && reward-server tasks check {task_id}"
    )


@tasks_app.command()
def check(
    task_ids: Annotated[
        list[str] | None, typer.Argument(help="Tasks to check; all prepared ones by default.")
    ] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Verify tasks' data: checksums, files, leaks, sample submission, bundled data."""
    settings, registry = _open(data_dir)
    names = task_ids or [task.card.id for task in registry.prepared()]
    reports = []
    for name in names:
        with err.status(f"checking {name}"):
            report = _inspect(settings, registry, name)
        reports.append(report)
        for line in () if as_json else report.as_lines():
            out.print(escape(line), highlight=False, soft_wrap=True)
    if as_json:
        typer.echo(json.dumps([report.as_json() for report in reports], indent=1))
    if any(report.failures for report in reports):
        raise typer.Exit(1)


def _inspect(settings: Settings, registry: Registry, task_id: str) -> LeakReport:
    # A late import: only this command needs the statistics packages, which are slow to import.
    from reward_server.tasks.preparation import inspection  # noqa: PLC0415

    if registry.is_competition(task_id):
        found = registry.find_competition(task_id)
        if isinstance(found, RefusedCompetition):
            return inspection.refuse_competition(found)
        return inspection.inspect_competition(found, grade_all)
    environment = getattr(settings.sandbox, "environment", None)
    folder = registry.folder(task_id)
    return inspection.inspect_task(folder, settings.data_dir, grade_all, environment)


@tasks_app.command()
def grade(  # noqa: PLR0913, PLR0917 - one option a part of the question
    task_id: Annotated[str | None, typer.Argument(help="The task the file is for.")] = None,
    submission: Annotated[Path | None, typer.Option(help="The file to grade.")] = None,
    answers: Annotated[
        Path | None, typer.Option(help="Answers to grade against; the task's own by default.")
    ] = None,
    cases: Annotated[Path | None, typer.Option(help="A folder of grading cases.")] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Grade a file, or every case folder below a folder, offline."""
    settings, registry = _open(data_dir)
    if cases is not None:
        if not cases.is_dir():
            message = f"there is no folder {cases}"
            raise SetupError(message)
        for case in grade_cases(cases, find_folders(settings.task_folders)):
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
    """Return the leaderboard standing of a score; only original data can win a medal."""
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
