"""MLE-bench's graders in the grading process: their scores, and whose fault an end is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reward_server.errors import InfrastructureError
from reward_server.grade.process import GradingLimits, ProcessGrader
from reward_server.model import ErrorKind
from tests.support import competitions as made

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from reward_server.model import Grade

FILE_BYTES = 1 << 20


@pytest.fixture(scope="module")
async def grader() -> AsyncIterator[ProcessGrader]:
    limits = GradingLimits(wall_seconds=20, cpu_seconds=10)
    async with ProcessGrader(limits=limits) as running:
        yield running


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("mlebench")
    made.make_package(root)
    made.make_data(root / "data")
    return root


async def grade(
    grader: ProcessGrader, root: Path, task_id: str, data: bytes, answers: Path | None = None
) -> Grade:
    folder = root / "mlebench" / "competitions" / task_id
    own = root / "data" / task_id / "prepared" / "private" / "test.csv"
    return await grader.grade_bytes(data, folder, answers or own, FILE_BYTES)


def fruits(word: str) -> bytes:
    return b"id,fruit\n" + b"".join(f"{i},{word}\n".encode() for i in range(8))


async def test_the_score_is_the_graders_own_and_not_rounded(
    grader: ProcessGrader, root: Path
) -> None:
    assert (await grade(grader, root, made.FRUIT, fruits("apple"))).score == 0.75
    levels = b"id,level\n1,1.0\n2,2.5\n3,4.1\n"
    score = (await grade(grader, root, made.RIVER, levels)).score
    assert score == pytest.approx(0.1 / 3, abs=1e-12)
    assert score != round(0.1 / 3, 5)


@pytest.mark.parametrize(
    ("task_id", "data"),
    [
        (made.FRUIT, b"id,fruit\n1,apple\n"),
        (made.FRUIT, fruits("none")),
        (made.FRUIT, fruits("undefined")),
        (made.FRUIT, fruits("deadly")),
        (made.FRUIT, fruits("untidy")),
        (made.FRUIT, b"id,something\n" + b"1,apple\n" * 8),
        (made.FRUIT, b"\x80\x04"),
        (made.FRUIT, b"id,fruit,fruit\n" + b"1,apple,apple\n" * 8),
        (made.RIVER, b""),
        (made.RIVER, b"id,level\n1,high\n2,high\n3,high\n"),
        (made.RIVER, b"id,level\n" + b"1,1\n" * 10_000),
    ],
    ids=[
        "refused by the grader",
        "None",
        "not a number",
        "kills the grader",
        "makes it write a file",
        "an error of the grader's",
        "a pickle",
        "a repeated column",
        "an empty file",
        "text for numbers",
        "a bomb",
    ],
)
async def test_a_failure_of_one_submission_is_the_programs_fault(
    grader: ProcessGrader, root: Path, task_id: str, data: bytes
) -> None:
    found = await grade(grader, root, task_id, data)
    assert found.failure is not None
    assert found.failure.kind is ErrorKind.INVALID_SUBMISSION
    assert (await grade(grader, root, made.FRUIT, fruits("apple"))).score == 0.75


@pytest.mark.parametrize("task_id", [made.SCALES, made.DEADLY_ID])
async def test_a_grader_that_fails_on_the_sample_too_is_at_fault(
    grader: ProcessGrader, root: Path, task_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(InfrastructureError) as raised:
        await grade(grader, root, task_id, b"id,weight\n1,2.0\n")
    assert raised.value.kind is ErrorKind.GRADER_ERROR
    assert raised.value.message == "the submission could not be graded"
    assert "and on the control" in caplog.text


async def test_a_grader_that_cannot_be_imported_is_at_fault(
    grader: ProcessGrader, tmp_path: Path
) -> None:
    package = made.make_package(tmp_path)
    made.add(package, "needy", "import no_such_package\n", made.RISING)
    made.write(tmp_path / "data", "needy", "id,level\n1,1\n", "id,level\n1,1\n")
    with pytest.raises(InfrastructureError):
        await grade(grader, tmp_path, "needy", b"id,level\n1,1\n")


async def test_other_answers_are_their_own_control(
    grader: ProcessGrader, root: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.csv"
    other.write_text("id,level\n1,1.0\n")
    assert (await grade(grader, root, made.RIVER, b"id,level\n1,1.5\n", other)).score == 0.5
    found = await grade(grader, root, made.RIVER, b"id,other\n1,1.5\n", other)
    assert found.failure is not None
    assert found.failure.kind is ErrorKind.INVALID_SUBMISSION


def test_grading_leaves_nothing_behind(root: Path) -> None:
    assert not list(root.rglob("__pycache__"))
    assert not Path("cache").exists()
    assert not any(path.stat().st_size for path in root.rglob("untidy"))
