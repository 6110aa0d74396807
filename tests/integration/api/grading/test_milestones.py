"""A program that fails after k of the seven steps earns -10 + 0.1 k; one that ends, its score.

In the solutions `#> 5` ends the last line of the statement that completes milestone 5.
"""

from __future__ import annotations

import ast
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reward_server.grade.process import grade_file
from reward_server.model import Milestone
from reward_server.tasks.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from tests.conftest import RunningServer

SOLUTIONS = Path(__file__).parents[1] / "solutions"
PYTHON = Path(__file__).parents[4] / ".venv-sandbox" / "bin" / "python"
IN_TURN = (
    Milestone.IMPORTED_PACKAGES,
    Milestone.LOADED_DATA,
    Milestone.DEFINED_MODEL,
    Milestone.TRAINED_MODEL,
    Milestone.TRAINING_LOSS,
    Milestone.TESTING_LOSS,
    Milestone.PREDICTED_TEST_LABELS,
)
SIGNS = {
    "nomad2018-predict-transparent-conductors": -1,
    "random-acts-of-pizza": 1,
    "spooky-author-identification": -1,
}
RAISE = 'raise RuntimeError("cut short")'
PHRASES = "".join(
    f"print({milestone.label!r}, file={stream})\n"
    for milestone in Milestone
    for stream in ("sys.stdout", "sys.stderr")
)


@dataclass(frozen=True, slots=True)
class ScoredProgram:
    kind: str | None
    reward: float
    milestones: tuple[str, ...]
    raised_on_line: int | None


@dataclass(frozen=True, slots=True)
class CutProgram:
    code: str
    line: int


@pytest.fixture(scope="module")
def score(client: httpx.Client) -> Callable[[str, str], dict[str, Any]]:
    answers: dict[tuple[str, str], dict[str, Any]] = {}

    def ask(task_id: str, code: str) -> dict[str, Any]:
        if (task_id, code) not in answers:
            response = client.post("/score", json={"task_id": task_id, "code": code})
            assert response.status_code == 200, response.text
            answers[task_id, code] = response.json()
        return answers[task_id, code]

    return ask


def read_solution(task_id: str, variant: str = "") -> str:
    return (SOLUTIONS / f"{task_id}{variant}.py").read_text()


def cut_after(code: str, steps: int) -> CutProgram:
    """Let a program fail right after so many steps; for none, right before the first is done."""
    statement = find_statement(code, IN_TURN[max(steps - 1, 0)])
    end = statement.end_lineno or statement.lineno
    line = end + 1 if steps else statement.lineno
    lines = code.split("\n")
    lines.insert(line - 1, " " * statement.col_offset + RAISE)
    return CutProgram("\n".join(lines), line)


def find_statement(code: str, milestone: Milestone) -> ast.stmt:
    lines = code.split("\n")
    (last,) = (n for n, line in enumerate(lines, 1) if line.endswith(f"#> {milestone.value}"))
    ending = [
        node
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.stmt) and node.end_lineno == last
    ]
    return max(ending, key=lambda node: (node.lineno, node.col_offset))


def outcome_of(answer: dict[str, Any]) -> ScoredProgram:
    place = re.search(rf"line (\d+), in .*\n\s+{re.escape(RAISE)}\n", answer["stderr_tail"])
    return ScoredProgram(
        kind=answer["error"] and answer["error"]["kind"],
        reward=answer["reward"],
        milestones=tuple(answer["milestones"]),
        raised_on_line=int(place[1]) if place else None,
    )


def expected_outcome(steps: int, line: int) -> ScoredProgram:
    return ScoredProgram(
        kind="nonzero_exit",
        reward=round(-10 + 0.1 * steps, 10),
        milestones=tuple(milestone.label for milestone in sorted(IN_TURN[:steps])),
        raised_on_line=line,
    )


def assert_each_step_earns(
    score: Callable[[str, str], dict[str, Any]], task_id: str, code: str, steps: tuple[int, ...]
) -> None:
    cuts = {count: cut_after(code, count) for count in steps}
    with ThreadPoolExecutor(2) as pool:
        answers = pool.map(lambda cut: score(task_id, cut.code), cuts.values())
        outcomes = dict(zip(cuts, map(outcome_of, answers), strict=True))
    assert outcomes == {count: expected_outcome(count, cut.line) for count, cut in cuts.items()}


@pytest.mark.parametrize("task_id", SIGNS)
def test_each_step_reached_before_a_failure_earns_a_tenth(
    score: Callable[[str, str], dict[str, Any]], task_id: str
) -> None:
    assert_each_step_earns(score, task_id, read_solution(task_id), tuple(range(8)))


@pytest.mark.parametrize(
    ("variant", "steps"),
    [(".functions", (2, 6)), (".guarded", (6,)), (".folds", (7,))],
    ids=["functions", "guarded", "folds"],
)
@pytest.mark.parametrize("task_id", SIGNS)
def test_the_same_steps_earn_the_same_in_programs_of_another_shape(
    score: Callable[[str, str], dict[str, Any]],
    task_id: str,
    variant: str,
    steps: tuple[int, ...],
) -> None:
    assert_each_step_earns(score, task_id, read_solution(task_id, variant), steps)


@pytest.mark.parametrize("task_id", SIGNS)
def test_a_program_that_ends_earns_the_score_of_its_submission(
    score: Callable[[str, str], dict[str, Any]],
    server: RunningServer,
    task_id: str,
    tmp_path: Path,
) -> None:
    code = read_solution(task_id)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(score, task_id, code)
        offline = score_offline(server.data_dir, task_id, code, tmp_path)
        answer = asked.result()
    assert (answer["status"], answer["error"], answer["valid"]) == ("scored", None, True)
    assert answer["reward"] == SIGNS[task_id] * answer["score"]
    assert answer["milestones"] == [milestone.label for milestone in Milestone]
    assert answer["score"] == pytest.approx(offline, rel=0, abs=1e-9)


def score_offline(data_dir: Path, task_id: str, code: str, folder: Path) -> float:
    """Run a program without server or sandbox, and grade the file it leaves."""
    task = Registry(data_dir).get(task_id)
    inside = f"/workdir/{task_id}/prepared/public"
    assert inside in code
    program = folder / "program.py"
    program.write_text(code.replace(inside, str(task.public)))
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run([PYTHON, program], cwd=folder, env=one_thread, capture_output=True, check=True)
    grade = grade_file(task.folder, folder / "submission.csv", task.answers)
    assert grade.score is not None, grade
    return grade.score


@pytest.mark.parametrize("task_id", SIGNS)
def test_printing_the_names_of_the_steps_earns_nothing(
    score: Callable[[str, str], dict[str, Any]], task_id: str
) -> None:
    plain = cut_after(read_solution(task_id), 4).code
    boasting, modest = score(task_id, f"import sys\n{PHRASES}{plain}"), score(task_id, plain)
    for stream in ("stdout_tail", "stderr_tail"):
        assert Milestone.PREDICTED_TEST_LABELS.label in boasting[stream]
    assert boasting["reward"] == modest["reward"]
    assert boasting["milestones"] == modest["milestones"]
