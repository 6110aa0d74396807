"""Grading in real processes: whose fault an end is, and that nothing but the score gets out."""

from __future__ import annotations

import asyncio
import os
import select
import signal
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reward_server.errors import InfrastructureError
from reward_server.grade.process import GradingLimits, ProcessGrader, grade_file
from reward_server.model import Box, ErrorKind, Execution, Failure
from reward_server.tasks.base import Source, Task
from reward_server.tasks.folders import find_folders, read_card

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from reward_server.model import Grade

PIZZA = find_folders()["random-acts-of-pizza"]
ANSWERS = "request_id,requester_received_pizza\nt3_a,0\nt3_b,1\nt3_c,0\n"
GOOD = ANSWERS.encode()
LIMITS = GradingLimits(wall_seconds=20, cpu_seconds=10)


@pytest.fixture(scope="module")
async def grader() -> AsyncIterator[ProcessGrader]:
    async with ProcessGrader(limits=LIMITS) as running:
        yield running


@pytest.fixture
def task(tmp_path: Path) -> Task:
    (tmp_path / "answers.csv").write_text(ANSWERS)
    return make_task(PIZZA, tmp_path / "answers.csv")


def make_task(folder: Path, answers: Path) -> Task:
    return Task(
        card=read_card(PIZZA),
        description="",
        folder=folder,
        public=folder,
        answers=answers,
        data_digest="",
        source=Source.TWIN,
    )


def execution(artifact: bytes | None, failure: Failure | None = None) -> Execution:
    return Execution(box=Box("none", "none"), failure=failure, artifact=artifact)


def folder_with_grader(tmp_path: Path, align: str, score: str) -> Path:
    (tmp_path / "grade.py").write_text(
        "import os, signal, sys, time\n"
        f"def align(submission, answers):\n    {align}\n"
        f"def score(truth, prediction):\n    {score}\n"
    )
    return tmp_path


def kind_of(grade: Grade) -> ErrorKind | None:
    return grade.failure.kind if grade.failure else None


async def test_a_valid_submission_has_its_score(grader: ProcessGrader, task: Task) -> None:
    grade = await grader.grade(execution(GOOD), task)
    assert (grade.score, grade.failure) == (1.0, None)


async def test_a_failed_execution_keeps_its_failure(grader: ProcessGrader, task: Task) -> None:
    failure = Failure(ErrorKind.TIMEOUT, "too slow")
    grade = await grader.grade(execution(GOOD, failure), task)
    assert (grade.score, grade.failure) == (None, failure)


async def test_no_artifact_is_no_submission(grader: ProcessGrader, task: Task) -> None:
    assert kind_of(await grader.grade(execution(None), task)) is ErrorKind.NO_SUBMISSION


async def test_an_artifact_beyond_the_cards_cap_is_invalid(
    grader: ProcessGrader, task: Task
) -> None:
    grade = await grader.grade_bytes(GOOD, task.folder, task.answers, len(GOOD) - 1)
    assert kind_of(grade) is ErrorKind.INVALID_SUBMISSION


@pytest.mark.parametrize(
    "submission",
    [
        b"",
        b"request_id,requester_received_pizza\n",
        b"request_id,requester_received_pizza\nt3_a,1\nt3_b,t3_secret\nt3_c,0\n",
        b"request_id,requester_received_pizza\n" + b"t3_a,1\n" * 10**6,
        b"\x80\x04\x95" + b"\0" * 100,
    ],
    ids=["empty", "header only", "a quoted label", "a bomb", "a pickle"],
)
async def test_an_invalid_submission_gets_one_fixed_text(
    grader: ProcessGrader, task: Task, submission: bytes
) -> None:
    grade = await grader.grade(execution(submission), task)
    assert grade.failure == Failure(
        ErrorKind.INVALID_SUBMISSION, "submission.csv does not have the form the task asks for"
    )


THE_PROGRAMS_FAULT = {
    "raises": "raise ValueError(f'expected {answers.to_dict()}')",
    "is killed": "os.kill(os.getpid(), signal.SIGKILL)",
    "crashes": "os.abort()",
    "takes too much memory": "return bytearray(8 << 30)",
    "writes a file": "open(__file__ + '.out', 'w').write('x')",
}


@pytest.mark.parametrize("align", THE_PROGRAMS_FAULT.values(), ids=THE_PROGRAMS_FAULT.keys())
async def test_a_crash_while_reading_is_the_programs_fault(
    grader: ProcessGrader, task: Task, tmp_path: Path, align: str
) -> None:
    bad = make_task(folder_with_grader(tmp_path, align, "return 1.0"), task.answers)
    grade = await grader.grade(execution(GOOD), bad)
    assert kind_of(grade) is ErrorKind.INVALID_SUBMISSION
    assert grade.failure is not None
    assert "t3_" not in grade.failure.message
    assert (await grader.grade(execution(GOOD), task)).score == 1.0


OUR_FAULT = {
    "raises": "raise ValueError('t3_a was 0')",
    "is killed": "os.kill(os.getpid(), signal.SIGKILL)",
    "exits": "sys.exit(0)",
    "returns no number": "return 'high'",
}


@pytest.mark.parametrize("score", OUR_FAULT.values(), ids=OUR_FAULT.keys())
async def test_a_crash_in_the_metric_is_a_grader_error_without_details(
    grader: ProcessGrader, task: Task, tmp_path: Path, score: str
) -> None:
    bad = make_task(folder_with_grader(tmp_path, "return 0, 0", score), task.answers)
    with pytest.raises(InfrastructureError) as raised:
        await grader.grade(execution(GOOD), bad)
    assert raised.value.kind is ErrorKind.GRADER_ERROR
    assert raised.value.message == "the submission could not be graded"
    assert (await grader.grade(execution(GOOD), task)).score == 1.0


async def test_missing_answers_are_a_grader_error(grader: ProcessGrader, tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError):
        await grader.grade(execution(GOOD), make_task(PIZZA, tmp_path / "nowhere.csv"))


@pytest.mark.parametrize("score", ["return float('nan')", "return float('inf')"])
async def test_a_score_that_is_not_finite_is_invalid(
    grader: ProcessGrader, task: Task, tmp_path: Path, score: str
) -> None:
    odd = make_task(folder_with_grader(tmp_path, "return 0, 0", score), task.answers)
    assert kind_of(await grader.grade(execution(GOOD), odd)) is ErrorKind.INVALID_SUBMISSION


async def test_what_a_grader_prints_does_not_disturb_the_answer(
    grader: ProcessGrader, task: Task, tmp_path: Path
) -> None:
    chatty = folder_with_grader(
        tmp_path, "os.write(1, b'noise' * 100); return 0, 0", "print('noise'); return 0.5"
    )
    assert (await grader.grade(execution(GOOD), make_task(chatty, task.answers))).score == 0.5


async def test_endless_reading_is_the_programs_fault_by_its_cpu_time(
    task: Task, tmp_path: Path
) -> None:
    endless = make_task(folder_with_grader(tmp_path, "while True: pass", "return 1"), task.answers)
    async with ProcessGrader(limits=GradingLimits(wall_seconds=30, cpu_seconds=1)) as grader:
        grade = await grader.grade(execution(GOOD), endless)
    assert kind_of(grade) is ErrorKind.INVALID_SUBMISSION


async def test_a_hang_is_a_grader_error_and_the_next_grading_works(
    task: Task, tmp_path: Path
) -> None:
    stuck = make_task(folder_with_grader(tmp_path, "time.sleep(60)", "return 1"), task.answers)
    async with ProcessGrader(limits=GradingLimits(wall_seconds=3)) as grader:
        with pytest.raises(InfrastructureError):
            await grader.grade(execution(GOOD), stuck)
        assert (await grader.grade(execution(GOOD), task)).score == 1.0


async def test_a_killed_grading_process_takes_its_fork_with_it(task: Task, tmp_path: Path) -> None:
    note = tmp_path / "pids"
    os.mkfifo(note)
    tell = f"note = os.open({str(note)!r}, os.O_WRONLY); os.write(note, b'%d %d' % pids)"
    align = f"pids = os.getppid(), os.getpid(); {tell}; os.close(note); time.sleep(60)"
    stuck = folder_with_grader(tmp_path, align, "return 1")
    async with ProcessGrader(limits=LIMITS) as grader:
        grading = asyncio.create_task(grader.grade(execution(GOOD), make_task(stuck, task.answers)))
        parent, fork = map(int, (await asyncio.to_thread(note.read_text)).split())
        watch = os.pidfd_open(fork)
        os.kill(parent, signal.SIGKILL)
        with pytest.raises(InfrastructureError):
            await grading
        assert (await grader.grade(execution(GOOD), task)).score == 1.0
    ended, _, _ = await asyncio.to_thread(select.select, [watch], [], [], 10)
    os.close(watch)
    assert ended == [watch]


BYTES = st.one_of(
    st.binary(max_size=200), st.text(max_size=60).map(lambda text: (ANSWERS + text).encode())
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=BYTES)
async def test_arbitrary_bytes_are_either_scored_or_invalid(
    data: bytes, grader: ProcessGrader, task: Task
) -> None:
    grade = await grader.grade(execution(data), task)
    assert (grade.score is None) == (kind_of(grade) is ErrorKind.INVALID_SUBMISSION)


def test_a_file_on_disk_is_graded_without_a_running_loop(task: Task, tmp_path: Path) -> None:
    (tmp_path / "submission.csv").write_bytes(GOOD)
    assert grade_file(PIZZA, tmp_path / "submission.csv", task.answers).score == 1.0
    missing = grade_file(PIZZA, tmp_path / "nothing.csv", task.answers)
    assert kind_of(missing) is ErrorKind.NO_SUBMISSION
