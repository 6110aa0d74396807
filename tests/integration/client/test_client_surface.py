"""What the package promises to those who import it: names, errors, types."""

from __future__ import annotations

import dataclasses
import importlib.resources
import inspect
import pickle
import subprocess
import sys
from typing import TYPE_CHECKING, get_type_hints

import pytest

import trainer_client
from trainer_client import AsyncRewardClient, Fields, Options, RewardClient, Submission
from trainer_client.client import errors
from trainer_client.client.options import OptionFields

if TYPE_CHECKING:
    from pathlib import Path

NAMES = [
    *("Answer", "AnswerFailure", "InstrumentationInfo", "Result", "SandboxInfo", "AnswerTimings"),
    *("AsyncRewardClient", "RewardClient", "Options"),
    *("Fields", "Job", "Submission"),
    *("RewardServerError", "SampleLostError", "RequestRefusedError", "TooLargeError"),
    *("InfrastructureError", "OverloadedError", "DeadlineExceededError", "JobCancelledError"),
]
USAGE = """
from trainer_client import AsyncRewardClient, RequestRefusedError, RewardClient, SampleLostError
from trainer_client import Submission

def reward(client: RewardClient, text: str) -> float | None:
    try:
        answer = client.score("task", completion=text, run_id="r", step=3, prompt_kind="improve")
    except SampleLostError as error:
        name: str | None = error.job_id
        return None
    weight: float = answer.duration_seconds
    return answer.reward

async def rewards(texts: list[str]) -> dict[int, float]:
    async with AsyncRewardClient("http://127.0.0.1:8000", deadline_seconds=60) as client:
        items = [Submission("task", completion=text) for text in texts]
        found = client.score_many(items, min_complete=1, rest="cancel")
        return {one.index: one.answer.reward async for one in found if one.answer is not None}
"""
MISTAKES = [
    'RewardClient().score("task", compltion="")',
    'RewardClient().score("task", code="", prompt_kind="better")',
    "RewardClient(retries=3)",
    'RewardClient().score("task", code="").rewrad',
    'x: float = RewardClient().score("task", code="").score',
]  # fmt: skip


def test_the_exported_names_are_these() -> None:
    assert sorted(trainer_client.__all__) == sorted(NAMES)
    assert all(hasattr(trainer_client, name) for name in NAMES)


def test_both_clients_have_the_same_surface() -> None:
    def surface(kind: type) -> dict[str, list[str]]:
        methods = inspect.getmembers(kind, inspect.isfunction)
        named = {name: method for name, method in methods if not name.startswith("_")}
        return {name: list(inspect.signature(one).parameters) for name, one in named.items()}

    assert surface(RewardClient) == surface(AsyncRewardClient)


def test_keywords_and_values_do_not_drift_apart() -> None:
    fields = [one.name for one in dataclasses.fields(Submission)]
    assert fields == ["task_id", *get_type_hints(Fields)]
    assert {one.name for one in dataclasses.fields(Options)} == set(OptionFields.__annotations__)


def test_sample_lost_error_covers_no_wrong_requests() -> None:
    kinds = [one for one in vars(errors).values() if inspect.isclass(one)]
    raised = [one for one in kinds if issubclass(one, errors.RewardServerError)]
    dropped = {one.__name__ for one in raised if issubclass(one, errors.SampleLostError)}
    assert {one.__name__ for one in raised} - dropped == {
        "RewardServerError",
        "RequestRefusedError",
    }
    drawn = errors.__doc__ or ""
    assert all(one.__name__ in drawn for one in raised)


def test_errors_can_be_pickled() -> None:
    known = errors.ErrorDetails(503, "worker_lost", retryable=True, job_id="j")
    error = pickle.loads(pickle.dumps(errors.InfrastructureError("gone", known)))  # noqa: S301
    assert isinstance(error, errors.InfrastructureError)
    assert (str(error), error.status, error.kind) == ("gone", 503, "worker_lost")
    assert (error.retryable, error.job_id) == (True, "j")


def test_types_ship_with_the_package_and_hold(tmp_path: Path) -> None:
    assert (importlib.resources.files("trainer_client") / "py.typed").is_file()
    assert check_types(tmp_path / "usage.py", USAGE) == ""
    found = check_types(
        tmp_path / "mistakes.py", "\n".join(["from trainer_client import RewardClient", *MISTAKES])
    )
    lines = {int(line.split(":")[1]) for line in found.splitlines() if ": error:" in line}
    assert lines == {number + 2 for number in range(len(MISTAKES))}


def check_types(file: Path, text: str) -> str:
    file.write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", str(file)],
        cwd=file.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    "wrong",
    [
        {"deadline_seconds": 0.0},
        {"deadline_seconds": float("nan")},
        {"outage_seconds": -1.0},
        {"resubmissions": -1},
        {"connections": 0},
    ],
)
def test_options_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be"):
        RewardClient(**wrong)  # type: ignore[arg-type]
