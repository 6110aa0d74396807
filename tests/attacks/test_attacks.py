"""Every attack is a line of data: a program, what it must be called, what it may earn."""

from __future__ import annotations

import math
import tomllib
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reward_server.api.answers import Answer
from reward_server.sandbox.cgroups import missing_limits
from tests.conftest import descendants

if TYPE_CHECKING:
    import httpx

    from tests.conftest import RunningServer

TASK = "spooky-author-identification"
HERE = Path(__file__).parent
HONEST = f"""
import shutil
shutil.copy("/workdir/{TASK}/prepared/public/sample_submission.csv", "submission.csv")
"""
BOX_MARKS = (b"/inside/launcher", b"sleep\x0086399")


@dataclass(frozen=True, slots=True)
class Case:
    id: str
    about: str
    program: str
    error: str | None = None
    error_without_cgroups: str | None = None
    reward: str | None = None
    milestones: tuple[str, ...] | None = None
    never_prints: str | None = None
    then: str | None = None
    wall_seconds: float | None = None


def load_cases() -> list[Case]:
    files = sorted(HERE.glob("*.toml"))
    return [Case(**case) for file in files for case in tomllib.loads(file.read_text())["case"]]


def score(client: httpx.Client, program: str, **fields: object) -> dict[str, Any]:
    body = {"task_id": TASK, "code": program, **fields}
    response = client.post("/score", json=body)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


@pytest.fixture(scope="module")
def honest(client: httpx.Client) -> dict[str, Any]:
    return score(client, HONEST)


@pytest.mark.parametrize("case", load_cases(), ids=lambda case: case.id)
def test_attack(
    case: Case, client: httpx.Client, server: RunningServer, honest: dict[str, Any]
) -> None:
    run_id = f"attack-{uuid.uuid4()}"
    limit = {} if case.wall_seconds is None else {"wall_seconds": case.wall_seconds}
    answer = score(client, case.program, run_id=run_id, **limit)
    if case.then is not None:
        answer = score(client, case.then)
    assert_outcome(case, answer, honest)
    assert_always(client, server, honest, answer, run_id if case.then is None else None)


def assert_outcome(case: Case, answer: dict[str, Any], honest: dict[str, Any]) -> None:
    expected = case.error
    if missing_limits() and case.error_without_cgroups:
        expected = case.error_without_cgroups
    kind = answer["error"] and answer["error"]["kind"]
    assert kind == expected, answer
    if case.reward == "score":
        assert answer["reward"] == honest["reward"]
    elif case.reward == "floor":
        assert answer["reward"] == -10.0, answer
    else:
        assert answer["reward"] == round(-10 + 0.1 * len(answer["milestones"]), 10)
    if case.milestones is not None:
        assert answer["milestones"] == list(case.milestones), answer
    if case.never_prints is not None:
        assert case.never_prints not in answer["stdout_tail"] + answer["stderr_tail"]


def assert_always(
    client: httpx.Client,
    server: RunningServer,
    honest: dict[str, Any],
    answer: dict[str, Any],
    run_id: str | None,
) -> None:
    assert client.get("/livez").status_code == 200
    assert score(client, HONEST)["reward"] == honest["reward"]
    assert box_processes(server) == []
    if run_id is not None:
        rows = client.get("/v1/solutions", params={"run_id": run_id}).json()["solutions"]
        assert [row["job_id"] for row in rows] == [answer["job_id"]]
    Answer.model_validate(answer)
    assert set(answer) == set(Answer.model_fields)
    assert math.isfinite(answer["reward"])
    assert str(server.data_dir) not in str(answer)


def in_container(pid: int) -> bool:
    """Tell whether a process is, or is below, the warden of a container."""
    while pid > 1:
        try:
            if b"/inside/warden" in Path(f"/proc/{pid}/cmdline").read_bytes():
                return True
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return False
    return False


def box_processes(server: RunningServer) -> list[str]:
    """Return what is left of boxes: below the server, or orphaned."""
    found = []
    below = descendants(server.pid)
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            line = (entry / "cmdline").read_bytes()
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        is_ours = int(entry.name) in below or parent == 1 or in_container(parent)
        if is_ours and any(mark in line for mark in BOX_MARKS):
            found.append(line.decode(errors="replace"))
    return found
