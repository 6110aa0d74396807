from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest

from reward_server.model import Blame, ErrorKind
from reward_server.sandbox.blame import RunEvidence, judge

CLEAN = RunEvidence(
    exit_code=0,
    timed_out=False,
    output_exceeded=False,
    oom_kills=0,
    processes_refused=0,
    disk_full=False,
    artifact="file",
)
# In the order of the agreement: the first that applies names the failure.
SIGNS: dict[str, dict[str, object]] = {
    "oom": {"oom_kills": 1},
    "disk_limit": {"disk_full": True},
    "pids_limit": {"processes_refused": 3},
    "output_limit": {"output_exceeded": True},
    "timeout": {"timed_out": True},
    "nonzero_exit": {"exit_code": 1},
    "no_submission": {"artifact": "absent"},
}


def kind_of(evidence: RunEvidence) -> str | None:
    failure = judge(evidence)
    return failure.kind.value if failure else None


@pytest.mark.parametrize(("first", "second"), list(combinations(SIGNS, 2)))
def test_of_two_signs_the_stronger_names_the_failure(first: str, second: str) -> None:
    evidence = replace(CLEAN, **{"exit_code": 1, **SIGNS[second], **SIGNS[first]})  # type: ignore[arg-type]
    assert kind_of(evidence) == first


@pytest.mark.parametrize("sign", ["oom", "disk_limit", "pids_limit"])
def test_a_limit_met_and_survived_is_no_failure(sign: str) -> None:
    evidence = replace(CLEAN, **SIGNS[sign])  # type: ignore[arg-type]
    assert kind_of(evidence) is None
    assert kind_of(replace(evidence, artifact="absent")) == "no_submission"


@pytest.mark.parametrize(
    ("artifact", "expected"),
    [("file", None), ("absent", "no_submission"), ("refused", "invalid_submission")],
)
def test_a_clean_end_is_judged_by_what_was_left(artifact: str, expected: str | None) -> None:
    assert kind_of(replace(CLEAN, artifact=artifact)) == expected


@pytest.mark.parametrize("code", [1, 2, 125, 137, 139, 255, -9])
def test_every_other_exit_is_an_error_whatever_was_left(code: int) -> None:
    assert kind_of(replace(CLEAN, exit_code=code)) == "nonzero_exit"
    # an exit code that looks like a kill is no proof of anything
    assert kind_of(replace(CLEAN, exit_code=code, artifact="absent")) == "nonzero_exit"


def test_a_stalled_program_ran_out_of_time_and_is_told_why() -> None:
    failure = judge(replace(CLEAN, exit_code=137, stalled_seconds=90.0))
    assert failure is not None
    assert failure.kind is ErrorKind.TIMEOUT
    assert failure.message == "the program made no progress for 90 seconds"
    assert kind_of(replace(CLEAN, exit_code=137, stalled_seconds=90.0, oom_kills=1)) == "oom"


@pytest.mark.parametrize("sign", SIGNS)
def test_a_verdict_always_blames_the_program(sign: str) -> None:
    failure = judge(replace(CLEAN, **{"exit_code": 1, **SIGNS[sign]}))  # type: ignore[arg-type]
    assert failure is not None
    assert failure.kind.blame is Blame.PROGRAM
