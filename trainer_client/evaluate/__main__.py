"""`python -m trainer_client.evaluate`: generates, scores and reports. Run again, it resumes."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import json
import platform
import signal
import sys
from collections import Counter
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import Progress

from trainer_client.client.asynchronous import AsyncRewardClient
from trainer_client.client.errors import RewardServerError
from trainer_client.evaluate.endpoint import ModelEndpoint, Sampling
from trainer_client.evaluate.evaluation import Evaluation, fetch_facts, unfinished
from trainer_client.evaluate.folder import (
    EvaluationRun,
    check_facts,
    locked,
    read_run,
    resolve_run_id,
    write_run,
)
from trainer_client.evaluate.options import read_options
from trainer_client.evaluate.plan import EvaluationError, UsageError
from trainer_client.evaluate.report import make_report
from trainer_client.evaluate.samples import SampleJournal
from trainer_client.evaluate.tables import markdown, show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from trainer_client.evaluate.evaluation import Lost
    from trainer_client.evaluate.plan import EvaluationOptions, EvaluationPlan

DONE, FAILED, WRONG, INCOMPLETE, INTERRUPTED = 0, 1, 2, 3, 130
_PACKAGE = "reward-server"

out = Console()
err = Console(stderr=True)


def main(words: Sequence[str] | None = None) -> int:
    """Run an evaluation and return the exit code."""
    try:
        plan, options = read_options(sys.argv[1:] if words is None else words)
        with locked(options.out):
            return _evaluate(plan, options)
    except UsageError as error:
        _say(f"error: {error}")
        return WRONG
    except (EvaluationError, RewardServerError, OSError) as error:
        _say(f"error: {error}")
        return FAILED
    except (asyncio.CancelledError, KeyboardInterrupt):
        _say("interrupted: what is done is kept; the same command goes on")
        return INTERRUPTED


def _evaluate(plan: EvaluationPlan, options: EvaluationOptions) -> int:
    earlier = read_run(options.out)
    plan = resolve_run_id(plan, earlier)
    with contextlib.closing(SampleJournal(options.out, keeps_text=options.keeps_text)) as journal:
        left = sum(1 for _ in unfinished(plan, journal))
        if earlier is not None:
            total = sum(1 for _ in plan.slots())
            _say(f"going on: {total - left} of {total} samples from scratch are through")
        if earlier is not None and not left:
            return _report(earlier, journal, Counter(), options)
        run, lost = asyncio.run(_run(plan, earlier, options, journal))
        return _report(run, journal, lost, options)


async def _run(
    plan: EvaluationPlan,
    earlier: EvaluationRun | None,
    options: EvaluationOptions,
    journal: SampleJournal,
) -> tuple[EvaluationRun, Lost]:
    _cancel_on_signals()
    sampling = Sampling(plan.model, plan.temperature, plan.top_p, plan.max_tokens)
    async with (
        AsyncRewardClient(options.server, options.server_key) as rewards,
        ModelEndpoint(
            options.endpoint,
            sampling,
            options.endpoint_key,
            deadline_seconds=options.deadline_seconds,
            concurrency=options.concurrency,
        ) as endpoint,
    ):
        run = await _begin(plan, earlier, options, rewards)
        evaluation = Evaluation(
            plan, run.tasks, journal, endpoint, rewards, score_seconds=options.score_seconds
        )
        with _progress(sum(1 for _ in unfinished(plan, journal))) as on_finished:
            await evaluation.run(options.concurrency, on_finished)
    return run, evaluation.lost


async def _begin(
    plan: EvaluationPlan,
    earlier: EvaluationRun | None,
    options: EvaluationOptions,
    rewards: AsyncRewardClient,
) -> EvaluationRun:
    """Return the run of the folder. A new one is written before the first sample."""
    if not await rewards.ready():
        message = f"the reward server at {options.server} is not ready"
        raise EvaluationError(message)
    facts = await fetch_facts(plan, rewards)
    if earlier is not None:
        check_facts(earlier, facts)
        return earlier
    server = await rewards.get("/version")
    versions = {
        "server": str(server.get("version")),
        "client": importlib.metadata.version(_PACKAGE),
        "python": platform.python_version(),
    }
    run = EvaluationRun(plan, facts, versions)
    write_run(options.out, run)
    return run


def _report(
    run: EvaluationRun, journal: SampleJournal, lost: Lost, options: EvaluationOptions
) -> int:
    report = make_report(run, journal, lost)
    text = json.dumps(report, indent=2, allow_nan=False) + "\n"
    (options.out / "report.json").write_text(text)
    (options.out / "report.md").write_text(markdown(report))
    if options.json is not None:
        options.json.write_text(text)
    show(report, out)
    if report["complete"]:
        return DONE
    _say("some samples are lost; the same command tries them again")
    return INCOMPLETE


def _cancel_on_signals() -> None:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    for number in (signal.SIGINT, signal.SIGTERM):
        if task is not None:
            loop.add_signal_handler(number, task.cancel)


@contextlib.contextmanager
def _progress(total: int) -> Iterator[Callable[[], None]]:
    with Progress(console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task("samples", total=total)
        yield lambda: progress.advance(task)


def _say(text: str) -> None:
    err.print(text, markup=False, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
