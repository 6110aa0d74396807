"""An attack as a line of data, and what must be true of its answer."""

from __future__ import annotations

import os
import tomllib
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reward_server.api.schemas.answers import ScoreAnswer
from reward_server.sandbox.bubblewrap.cgroups import missing_limits

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx

TASK = "spooky-author-identification"
HERE = Path(__file__).parent
HONEST = f"""
import shutil
shutil.copy("/workdir/{TASK}/prepared/public/sample_submission.csv", "submission.csv")
"""


@dataclass(frozen=True, slots=True)
class Case:
    """One program and what it must be called.

    `then` is a program that runs after it and `beside` one that runs at the same time; where
    there is one, its answer is the one that counts. `error_in` names another end in one kind of
    sandbox. `prints` proves that the attack came to its end, `never_prints` that it was in vain.
    `alone` says why the outcome may depend on what else runs. Without cgroups some attacks end
    under another name, and those that nothing but a cgroup ends are left out; so are, for an
    ordinary user, those that only root can do something about (SECURITY.md names them).
    """

    id: str
    about: str
    program: str
    error: str | None = None
    error_in: Mapping[str, str] = field(default_factory=dict)
    error_without_cgroups: str | None = None
    needs_cgroups: bool = False
    needs_root: bool = False
    reward: str | None = None
    milestones: tuple[str, ...] | None = None
    prints: str | None = None
    never_prints: str | None = None
    then: str | None = None
    beside: str | None = None
    wall_seconds: float | None = None
    alone: str | None = None

    @property
    def is_single(self) -> bool:
        return self.then is None and self.beside is None


def load_cases(*, everything: bool = False) -> list[Case]:
    """Return the cases that can end on this machine, or all."""
    tables = [tomllib.loads(file.read_text())["case"] for file in sorted(HERE.glob("*.toml"))]
    cases = [Case(**case) for table in tables for case in table]
    if everything:
        return cases
    is_unlimited, is_ordinary = bool(missing_limits()), os.geteuid() != 0
    return [
        case
        for case in cases
        if not (case.needs_cgroups and is_unlimited) and not (case.needs_root and is_ordinary)
    ]


def score(client: httpx.Client, program: str, **fields: object) -> dict[str, Any]:
    """Have a program scored; `SERVER_PORT` in it becomes the port of the server."""
    code = program.replace("SERVER_PORT", str(client.base_url.port))
    response = client.post("/score", json={"task_id": TASK, "code": code, **fields})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def attack(client: httpx.Client, case: Case) -> tuple[dict[str, Any], str]:
    """Carry out an attack; return the answer that counts and the run it is stored under."""
    run_id = f"attack-{uuid.uuid4()}"
    limit = {} if case.wall_seconds is None else {"wall_seconds": case.wall_seconds}
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(score, client, case.program, run_id=run_id, **limit)
        if case.beside is not None:
            answer = score(client, case.beside, run_id=f"{run_id}-beside", **limit)
            first.result()
            return answer, f"{run_id}-beside"
        answer = first.result()
    if case.then is not None:
        run_id = f"{run_id}-then"
        answer = score(client, case.then, run_id=run_id)
    return answer, run_id


def expected_error(case: Case, kind: str) -> str | None:
    if missing_limits() and case.error_without_cgroups:
        return case.error_without_cgroups
    return case.error_in.get(kind, case.error)


def assert_outcome(case: Case, answer: dict[str, Any], honest: dict[str, Any]) -> None:
    error = answer["error"] and answer["error"]["kind"]
    assert error == expected_error(case, answer["sandbox"]["kind"]), answer
    if case.reward == "score":
        assert answer["reward"] == honest["reward"]
    elif case.reward == "floor":
        assert answer["reward"] == -10.0, answer
    else:
        assert answer["reward"] == round(-10 + 0.1 * len(answer["milestones"]), 10)
    if case.milestones is not None:
        assert answer["milestones"] == list(case.milestones), answer
    output = answer["stdout_tail"] + answer["stderr_tail"]
    assert case.prints is None or case.prints in answer["stdout_tail"], answer
    assert case.never_prints is None or case.never_prints not in output, answer


def assert_well_formed(answer: dict[str, Any]) -> None:
    ScoreAnswer.model_validate(answer)
    assert set(answer) == set(ScoreAnswer.model_fields)
    assert abs(answer["reward"]) < 1e6
