"""The command line: serve, work, check, score, tasks, solutions, prompts, rescore, lm, openapi."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
from pathlib import Path  # noqa: TC003 -- typer reads the options' types
from typing import TYPE_CHECKING, Annotated

import typer
from prometheus_client import start_http_server
from rich.markup import escape
from rich.table import Table

from reward_server.api import serving
from reward_server.api.app import create_app
from reward_server.api.openapi import no_services, render
from reward_server.bootstrap import preflight
from reward_server.bootstrap.implementations import make_deadlines
from reward_server.bootstrap.lifecycle import open_services, open_worker
from reward_server.cli.console import DEFAULT_URL, AsJson, DataDir, Key, Url, connect, err, out
from reward_server.cli.lm import lm_app
from reward_server.cli.prompts import prompts_command
from reward_server.cli.rescore import rescore_command
from reward_server.cli.solutions import show_answer, solutions_app
from reward_server.cli.tasks import tasks_app
from reward_server.errors import ServiceError
from reward_server.jobs.deadlines import bound_seconds
from reward_server.jobs.metrics import Metrics
from reward_server.settings import Settings, load_settings
from trainer_client import RewardServerError as NoAnswerError

if TYPE_CHECKING:
    from trainer_client import Fields

app = typer.Typer(
    help="Score generated machine-learning programs in isolation.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(tasks_app, name="tasks")
app.add_typer(lm_app, name="lm")
app.add_typer(solutions_app, name="solutions")
app.command("rescore")(rescore_command)
app.command("prompts")(prompts_command)

Host = Annotated[str | None, typer.Option(help="Address to listen on.")]
Port = Annotated[int | None, typer.Option(help="Port to listen on.")]


@app.command()
def serve(
    host: Host = None,
    port: Port = None,
    data_dir: DataDir = None,
    work_here: Annotated[  # noqa: FBT002 - a flag
        bool, typer.Option("--work/--no-work", help="Also run programs in this process.")
    ] = True,
) -> None:
    """Run the server until it is stopped."""
    settings = load_settings(host=host, port=port, data_dir=data_dir)
    _refuse_if_missing(preflight.run_preflight(settings, works=work_here))
    _log_to_stderr()
    served = create_app(lambda: open_services(settings, works=work_here))
    serving.serve(served, settings.host, settings.port)


@app.command()
def work(
    data_dir: DataDir = None,
    metrics_port: Annotated[
        int | None, typer.Option(help="Serve Prometheus metrics on this port of 127.0.0.1.")
    ] = None,
) -> None:
    """Run a worker for the jobs of a shared database, until it is stopped."""
    settings = load_settings(data_dir=data_dir)
    _refuse_if_missing(preflight.run_preflight(settings, serves=False))
    _log_to_stderr()
    metrics = Metrics()
    if metrics_port is not None:
        start_http_server(metrics_port, "127.0.0.1", metrics.registry)
    asyncio.run(_work(settings, metrics))


async def _work(settings: Settings, metrics: Metrics) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with open_worker(settings, metrics) as worker:
        logging.getLogger(__name__).info("worker %s is ready", worker.lease_request.worker)
        await stopped.wait()


def _log_to_stderr() -> None:
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("alembic").setLevel(logging.WARNING)


def _refuse_if_missing(findings: list[preflight.PreflightFinding]) -> None:
    for finding in findings:
        if not finding.is_met:
            err.print(f"[red]missing[/] {escape(finding.name)}: {escape(finding.detail)}")
        elif finding.is_warning:
            err.print(f"[yellow]note[/] {escape(finding.name)}: {escape(finding.detail)}")
    if not all(finding.is_met for finding in findings):
        raise typer.Exit(1)


@app.command()
def check(host: Host = None, port: Port = None, data_dir: DataDir = None) -> None:
    """Print the effective settings and check every prerequisite."""
    settings = load_settings(host=host, port=port, data_dir=data_dir)
    out.print_json(settings.model_dump_json())
    table = Table("prerequisite", "state", "detail")
    findings = preflight.run_preflight(settings)
    for finding in findings:
        state = "[red]missing[/]" if not finding.is_met else "[green]ok[/]"
        state = "[yellow]limited[/]" if finding.is_warning else state
        table.add_row(finding.name, state, escape(finding.detail))
    out.print(table)
    bound = bound_seconds(make_deadlines(settings), settings.limits.wall_seconds)
    out.print(f"every accepted job ends within {bound:.0f} seconds")
    if not all(finding.is_met for finding in findings):
        raise typer.Exit(1)


@app.command()
def score(
    file: Annotated[Path, typer.Argument(help="A .py program or a completion; - reads stdin.")],
    task: Annotated[str, typer.Option(help="The task it solves.")],
    url: Url = DEFAULT_URL,
    api_key: Key = None,
    as_json: AsJson = False,  # noqa: FBT002 - a flag
) -> None:
    """Score a program or a completion on a server."""
    text = typer.get_text_stream("stdin").read() if str(file) == "-" else file.read_text()
    source: Fields = {"code": text} if file.suffix == ".py" else {"completion": text}
    with connect(url, api_key) as client:
        answer = client.score(task, **source).raw
    if as_json:
        out.print_json(json.dumps(dict(answer)))
    else:
        show_answer(answer)


@app.command("openapi")
def openapi_command(
    output: Annotated[
        Path | None, typer.Option(help="Write to this file instead of stdout.")
    ] = None,
) -> None:
    """Print the OpenAPI document of the server."""
    text = render(create_app(no_services).openapi())
    if output is None:
        typer.echo(text, nl=False)
    else:
        output.write_text(text)


def main() -> None:
    """Run the command line; report expected errors in one line."""
    try:
        app()
    except (ServiceError, NoAnswerError) as error:
        err.print(f"[red]error[/] {escape(str(error))}")
        raise SystemExit(1) from None
