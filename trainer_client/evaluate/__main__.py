"""`python -m trainer_client.evaluate`: draws, scores and reports; called again, it goes on."""

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
from trainer_client.evaluate.evaluation import Evaluation, learn, unfinished
from trainer_client.evaluate.folder import (
    EvaluationRun,
    check_facts,
    held,
    read_run,
    settle,
    write_run,
)
from trainer_client.evaluate.options import read_options
from trainer_client.evaluate.plan import EvaluationError, UsageError
from trainer_client.evaluate.report import make_report
from trainer_client.evaluate.samples import Ledger
from trainer_client.evaluate.tables import markdown, show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from trainer_client.evaluate.evaluation import Lost
    from trainer_client.evaluate.plan import EvaluationPlan, Means

DONE, FAILED, WRONG, INCOMPLETE, INTERRUPTED = 0, 1, 2, 3, 130
_PACKAGE = "reward-server"

out = Console()
err = Console(stderr=True)


def main(words: Sequence[str] | None = None) -> int:
    """Evaluate as the command line says and return the exit code."""
    try:
        plan, means = read_options(sys.argv[1:] if words is None else words)
        with held(means.out):
            return _evaluate(plan, means)
    except UsageError as error:
        _say(f"error: {error}")
        return WRONG
    except (EvaluationError, RewardServerError, OSError) as error:
        _say(f"error: {error}")
        return FAILED
    except (asyncio.CancelledError, KeyboardInterrupt):
        _say("interrupted: what is done is kept; the same command goes on")
        return INTERRUPTED


def _evaluate(plan: EvaluationPlan, means: Means) -> int:
    earlier = read_run(means.out)
    plan = settle(plan, earlier)
    with contextlib.closing(Ledger(means.out, keeps_text=means.keeps_text)) as ledger:
        left = sum(1 for _ in unfinished(plan, ledger))
        if earlier is not None:
            total = sum(1 for _ in plan.slots())
            _say(f"going on: {total - left} of {total} samples from scratch are through")
        if earlier is not None and not left:
            return _report(earlier, ledger, Counter(), means)
        run, lost = asyncio.run(_walk(plan, earlier, means, ledger))
        return _report(run, ledger, lost, means)


async def _walk(
    plan: EvaluationPlan, earlier: EvaluationRun | None, means: Means, ledger: Ledger
) -> tuple[EvaluationRun, Lost]:
    _cancel_on_signals()
    sampling = Sampling(plan.model, plan.temperature, plan.top_p, plan.max_tokens)
    async with (
        AsyncRewardClient(means.server, means.server_key) as rewards,
        ModelEndpoint(
            means.endpoint,
            sampling,
            means.endpoint_key,
            deadline_seconds=means.deadline_seconds,
            concurrency=means.concurrency,
        ) as endpoint,
    ):
        run = await _begin(plan, earlier, means, rewards)
        evaluation = Evaluation(
            plan, run.tasks, ledger, endpoint, rewards, score_seconds=means.score_seconds
        )
        with _progress(sum(1 for _ in unfinished(plan, ledger))) as tell:
            await evaluation.run(means.concurrency, tell)
    return run, evaluation.lost


async def _begin(
    plan: EvaluationPlan, earlier: EvaluationRun | None, means: Means, rewards: AsyncRewardClient
) -> EvaluationRun:
    """Return what the folder is about, written down before there is a sample."""
    if not await rewards.ready():
        message = f"the reward server at {means.server} is not ready"
        raise EvaluationError(message)
    facts = await learn(plan, rewards)
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
    write_run(means.out, run)
    return run


def _report(run: EvaluationRun, ledger: Ledger, lost: Lost, means: Means) -> int:
    report = make_report(run, ledger, lost)
    text = json.dumps(report, indent=2, allow_nan=False) + "\n"
    (means.out / "report.json").write_text(text)
    (means.out / "report.md").write_text(markdown(report))
    if means.json is not None:
        means.json.write_text(text)
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
