"""TRL's reward function against the real server, both kinds of it."""

from __future__ import annotations

import asyncio
import pickle
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import ROOT, free_port
from tests.integration.trl.losing import LosingServer
from tests.integration.verl.conftest import CRASH, NO_CODE, nap
from tests.integration.verl.training import TASK
from trainer_client import InfrastructureError, RequestRefusedError
from trainer_client.integrations.trl.reward import (
    AsyncReward,
    SyncReward,
    make_async_reward,
    make_reward,
)
from trainer_client.run import Run

if TYPE_CHECKING:
    import httpx

    from tests.conftest import RunningServer

KINDS = [make_reward, make_async_reward]
TEXTS = [nap(0.6, 0.4), NO_CODE, nap(0.3, 0.2), CRASH, nap(0.1)]
NAP = "A nap of 0.3 s"


class RecordedLogs:
    """What a trainer would log."""

    def __init__(self) -> None:
        self.metrics: defaultdict[str, list[float]] = defaultdict(list)
        self.columns: dict[str, list[Any]] = {}

    def mean(self, name: str) -> float:
        values = self.metrics[f"reward_server/{name}/mean"]
        return sum(values) / len(values)


def call(
    function: SyncReward | AsyncReward,
    texts: list[str],
    logs: RecordedLogs | None = None,
    **columns: Any,
) -> list[float | None]:
    """Call the function as TRL does."""
    logs = logs or RecordedLogs()
    given = {
        "prompts": [[{"role": "user", "content": "Write a program."}]] * len(texts),
        "completions": [[{"role": "assistant", "content": text}] for text in texts],
        "completion_ids": [[1, 2]] * len(texts),
        "task_id": [TASK] * len(texts),
        "trainer_state": SimpleNamespace(global_step=6),
        "log_metric": lambda name, value: logs.metrics[name].append(value),
        "log_extra": logs.columns.__setitem__,
        **columns,
    }
    found = function(**given)
    return asyncio.run(found) if asyncio.iscoroutine(found) else found


def program_of(text: str) -> str:
    return text.partition("```python\n")[2].rpartition("```")[0].strip()


def stored(asked: httpx.Client, run_id: str) -> list[dict[str, Any]]:
    page = asked.get("/v1/solutions", params={"run_id": run_id, "limit": 100}).json()
    solutions: list[dict[str, Any]] = page["solutions"]
    return solutions


@pytest.mark.parametrize("make", KINDS)
def test_rewards_are_in_the_order_of_the_completions(
    make: Any, arena: RunningServer, asked: httpx.Client
) -> None:
    function = make(Run(arena.url, f"order-{make.__name__}"))
    rewards = call(function, TEXTS)
    assert rewards[1] == -10
    assert rewards[3] is not None
    assert -10 <= rewards[3] < -9
    assert [answer.valid for answer in function.answers] == [True, False, True, False, True]
    assert rewards == [answer.reward for answer in function.answers]
    for text, answer in zip(TEXTS, function.answers, strict=True):
        solution = asked.get(f"/v1/solutions/{answer.solution_id}").json()
        assert program_of(text) == (solution["code"] or "").strip()
        assert (solution["step"], solution["prompt_kind"]) == (7, "scratch")


@pytest.mark.parametrize("make", KINDS)
def test_a_lost_sample_is_none_and_the_others_keep_their_rewards(
    make: Any, arena: RunningServer
) -> None:
    logs = RecordedLogs()
    with LosingServer(arena.url, NAP) as losing:
        function = make(Run(losing.url, "lost"))
        rewards = call(function, TEXTS, logs)
    assert [reward is None for reward in rewards] == [False, False, True, False, False]
    assert rewards[1] == -10
    assert logs.mean("lost") == pytest.approx(1 / 5)
    assert logs.mean("valid") == pytest.approx(2 / 4)
    assert logs.columns["outcome"][2] == "lost: sandbox_lost"
    assert logs.columns["solution_id"][2] is None


@pytest.mark.parametrize("make", KINDS)
def test_the_third_batch_in_a_row_without_any_reward_ends_the_run(
    make: Any, arena: RunningServer
) -> None:
    with LosingServer(arena.url, NAP) as losing:
        function = make(Run(losing.url, "all-lost"))
        lost, kept = [TEXTS[2], TEXTS[2]], [TEXTS[2], NO_CODE]
        for texts in (lost, lost, kept, lost, lost):
            assert call(function, texts) == [None, -10 if texts is kept else None]
        assert call(function, lost, is_validation=[True, True]) == [None, None]
        with pytest.raises(InfrastructureError, match="none of 2 samples has a reward"):
            call(function, lost)


@pytest.mark.parametrize("make", KINDS)
def test_an_unreachable_server_loses_samples_and_then_the_run(make: Any) -> None:
    gone = Run(f"http://127.0.0.1:{free_port()}", outage_seconds=0, deadline_seconds=5)
    function = make(gone)
    for _ in range(2):
        assert call(function, [NO_CODE, NO_CODE]) == [None, None]
    with pytest.raises(InfrastructureError, match="none of 2 samples"):
        call(function, [NO_CODE, NO_CODE])


@pytest.mark.parametrize("make", KINDS)
def test_a_refused_request_ends_the_run(make: Any, arena: RunningServer) -> None:
    function = make(Run(arena.url, "refused"))
    with pytest.raises(RequestRefusedError, match="no such task") as refused:
        call(function, TEXTS[:2], task_id=[TASK, "not-here"])
    assert "'not-here'" in refused.value.__notes__[0]
    assert arena.url in refused.value.__notes__[0]
    with pytest.raises(ValueError, match="names no task_id"):
        call(function, TEXTS[:1], task_id=[None])


@pytest.mark.parametrize("make", KINDS)
def test_a_repeated_text_in_a_step_is_another_sample(make: Any, arena: RunningServer) -> None:
    """As in gradient accumulation, evaluation or after a resumption."""
    run = Run(arena.url, f"again-{make.__name__}")
    function = make(run)
    first = [call(function, [NO_CODE, NO_CODE]), call(function, [CRASH, NO_CODE])]
    ids = {answer.solution_id for answer in function.answers}
    resumed = make(run)
    assert call(resumed, [NO_CODE, CRASH]) == [-10, first[1][0]]
    assert len(ids | {answer.solution_id for answer in resumed.answers}) == 4


@pytest.mark.parametrize("make", KINDS)
def test_one_function_may_score_several_batches_at_once(make: Any, arena: RunningServer) -> None:
    function = make(Run(arena.url, "at-once"))
    batches = [[NO_CODE, nap(0.2 + 0.1 * number)] for number in range(4)]
    with ThreadPoolExecutor(len(batches)) as threads:
        found = list(threads.map(lambda texts: call(function, texts), batches))
    assert all(failed == -10 for failed, _ in found)
    assert all(valid is not None and valid > -9 for _, valid in found)


def test_what_was_measured_is_logged_for_each_sample(arena: RunningServer) -> None:
    logs, function = RecordedLogs(), make_reward(Run(arena.url, "logged"))
    call(function, TEXTS, logs)
    durations = [answer.duration_seconds for answer in function.answers if answer]
    assert logs.metrics["reward_server/duration_seconds/mean"] == durations
    assert logs.columns["duration_seconds"] == durations
    assert logs.columns["outcome"] == ["valid", "no_code", "valid", "nonzero_exit", "valid"]
    assert logs.mean("valid") == pytest.approx(3 / 5)
    assert (logs.mean("lost"), logs.mean("improvement"), logs.mean("timed_out")) == (0, 0, 0)


def test_the_store_has_parents_and_validation_samples(
    arena: RunningServer, asked: httpx.Client
) -> None:
    function = make_reward(Run(arena.url, "family"))
    call(function, [nap(0.1)])
    (parent,) = function.answers
    assert parent is not None
    call(function, [nap(0.2), NO_CODE], parent_id=[parent.solution_id, None])
    improved, _ = function.answers
    assert improved is not None
    child = asked.get(f"/v1/solutions/{improved.solution_id}").json()
    assert (child["parent_id"], child["prompt_kind"]) == (parent.solution_id, "improve")
    call(function, [NO_CODE], is_validation=[True])
    assert len(stored(asked, "family")) == 3
    assert len(stored(asked, "family/validation")) == 1


def test_programs_end_at_the_time_limit_of_the_run(arena: RunningServer) -> None:
    function = make_reward(Run(arena.url, "limited", wall_seconds=1.0))
    logs = RecordedLogs()
    call(function, [nap(30), NO_CODE], logs)
    assert logs.columns["outcome"] == ["timeout", "no_code"]
    assert logs.mean("timed_out") == pytest.approx(1 / 2)


@pytest.mark.parametrize("make", KINDS)
def test_trl_knows_the_function_by_its_name_and_may_pickle_it(make: Any) -> None:
    function = make(Run(run_id="named"), "programs")
    again = pickle.loads(pickle.dumps(function))  # noqa: S301 - our own bytes
    assert (function.__name__, again.__name__, again.run) == ("programs", "programs", function.run)


def test_the_function_wants_neither_trl_nor_torch() -> None:
    code = (
        "import sys, trainer_client.integrations.trl.reward; "
        "sys.exit(bool({'torch', 'trl', 'datasets', 'transformers'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
