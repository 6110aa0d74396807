"""The command line: serve, work, check, score, tasks, solutions, prompts, rescore, lm."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
from pathlib import Path
from typing import Annotated

import typer
import uvicorn
from prometheus_client import start_http_server
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from reward_server import preflight
from reward_server.api.app import create_app
from reward_server.cli_lm import lm_app
from reward_server.cli_prompts import prompts_command
from reward_server.cli_rescore import rescore_command
from reward_server.cli_tasks import tasks_app
from reward_server.errors import RewardServerError
from reward_server.jobs.bounds import bound_seconds
from reward_server.jobs.meter import Meter
from reward_server.opening import open_services, open_worker
from reward_server.settings import Settings, load_settings
from reward_server.wiring import make_bounds
from trainer_client.client import Answer, RewardClient
from trainer_client.client import RewardServerError as NoAnswerError

_DRAIN_SECONDS = 10
_KEEP_ALIVE_SECONDS = 120

app = typer.Typer(
    help="Scores generated machine-learning programs in isolation.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
solutions_app = typer.Typer(help="Look into the solution store.", no_args_is_help=True)
app.add_typer(tasks_app, name="tasks")
app.add_typer(lm_app, name="lm")
app.add_typer(solutions_app, name="solutions")
app.command("rescore")(rescore_command)
app.command("prompts")(prompts_command)

out = Console()
err = Console(stderr=True)

DataDir = Annotated[Path | None, typer.Option(help="Where data and the database live.")]
Host = Annotated[str | None, typer.Option(help="Address to listen on.")]
Port = Annotated[int | None, typer.Option(help="Port to listen on.")]
Url = Annotated[str, typer.Option(help="The server to ask.")]
Key = Annotated[str | None, typer.Option(envvar="REWARD_SERVER_API_KEY", help="API key.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
_HERE = "http://127.0.0.1:8000"


@app.command()
def serve(
    host: Host = None,
    port: Port = None,
    data_dir: DataDir = None,
    work_here: Annotated[  # noqa: FBT002 - a flag
        bool, typer.Option("--work/--no-work", help="Run programs in this process, too.")
    ] = True,
) -> None:
    """Serve until stopped."""
    settings = load_settings(host=host, port=port, data_dir=data_dir)
    _refuse_if_missing(preflight.look(settings, works=work_here))
    _log_to_stderr()
    uvicorn.run(
        create_app(lambda: open_services(settings, works=work_here)),
        host=settings.host,
        port=settings.port,
        loop="uvloop",
        http="httptools",
        access_log=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_DRAIN_SECONDS,
    )


@app.command()
def work(
    data_dir: DataDir = None,
    metrics_port: Annotated[
        int | None, typer.Option(help="Show numbers on this port of loopback.")
    ] = None,
) -> None:
    """Run jobs of a database that servers elsewhere fill, until stopped."""
    settings = load_settings(data_dir=data_dir)
    _refuse_if_missing(preflight.look(settings, serves=False))
    _log_to_stderr()
    meter = Meter()
    if metrics_port is not None:
        start_http_server(metrics_port, "127.0.0.1", meter.registry)
    asyncio.run(_work(settings, meter))


async def _work(settings: Settings, meter: Meter) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with open_worker(settings, meter) as worker:
        logging.getLogger(__name__).info("worker %s is ready", worker.claim.worker)
        await stopped.wait()


def _log_to_stderr() -> None:
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("alembic").setLevel(logging.WARNING)


def _refuse_if_missing(findings: list[preflight.Finding]) -> None:
    for finding in findings:
        if not finding.is_met:
            err.print(f"[red]missing[/] {escape(finding.name)}: {escape(finding.detail)}")
        elif finding.is_warning:
            err.print(f"[yellow]note[/] {escape(finding.name)}: {escape(finding.detail)}")
    if not all(finding.is_met for finding in findings):
        raise typer.Exit(1)


@app.command()
def check(host: Host = None, port: Port = None, data_dir: DataDir = None) -> None:
    """Print the effective settings and the state of every prerequisite."""
    settings = load_settings(host=host, port=port, data_dir=data_dir)
    out.print_json(settings.model_dump_json())
    table = Table("prerequisite", "state", "detail")
    findings = preflight.look(settings)
    for finding in findings:
        state = "[red]missing[/]" if not finding.is_met else "[green]ok[/]"
        state = "[yellow]limited[/]" if finding.is_warning else state
        table.add_row(finding.name, state, escape(finding.detail))
    out.print(table)
    bound = bound_seconds(make_bounds(settings), settings.limits.wall_seconds)
    out.print(f"every accepted job ends within {bound:.0f} seconds")
    if not all(finding.is_met for finding in findings):
        raise typer.Exit(1)


@app.command()
def score(
    file: Annotated[Path, typer.Argument(help="A .py program, or a model's text; - for stdin.")],
    task: Annotated[str, typer.Option(help="The task it solves.")],
    url: Url = _HERE,
    api_key: Key = None,
    as_json: AsJson = False,  # noqa: FBT002 - a flag
) -> None:
    """Have a server score a program or a completion."""
    text = typer.get_text_stream("stdin").read() if str(file) == "-" else file.read_text()
    field = "code" if file.suffix == ".py" else "completion"
    with RewardClient(url, api_key) as client:
        answer = client.score(task, **{field: text})
    if as_json:
        out.print_json(json.dumps(answer))
    else:
        _show(answer)


def _show(answer: Answer) -> None:
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
    task: Annotated[str | None, typer.Option()] = None,
    run: Annotated[str | None, typer.Option()] = None,
    valid: Annotated[bool | None, typer.Option()] = None,
    order: Annotated[str, typer.Option(help="reward, time or duration.")] = "reward",
    limit: Annotated[int, typer.Option()] = 20,
    url: Url = _HERE,
    api_key: Key = None,
    as_json: AsJson = False,  # noqa: FBT002 - a flag
) -> None:
    """List solutions, the best, newest or longest first."""
    query = {"task_id": task, "run_id": run, "valid": valid, "order": order, "limit": limit}
    with RewardClient(url, api_key) as client:
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
    url: Url = _HERE,
    api_key: Key = None,
    as_json: AsJson = False,  # noqa: FBT002 - a flag
) -> None:
    """Show one solution with its code and output."""
    with RewardClient(url, api_key) as client:
        solution = client.get(f"/v1/solutions/{solution_id}")
    if as_json:
        out.print_json(json.dumps(solution))
        return
    _show(solution)
    if solution["standing"]:
        out.print(f"standing {json.dumps(solution['standing'])}")
    out.print(f"[bold]code[/]\n{escape(solution['code'])}")


def main() -> None:
    """Run the command line; what the user can mend is said in one line."""
    try:
        app()
    except (RewardServerError, NoAnswerError) as error:
        err.print(f"[red]error[/] {escape(str(error))}")
        raise SystemExit(1) from None
