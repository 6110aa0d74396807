from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest

from reward_server.model import Blame, ErrorKind
from reward_server.sandbox.blame import find_failure
from reward_server.sandbox.run_report import RunReport

CLEAN = RunReport(
    launched=True, start_ns=0, end_ns=1, exit_code=0, artifact_status="file", artifact=b""
)
# In the order of the agreement: the first that applies names the failure.
SIGNS: dict[str, dict[str, object]] = {
    "oom": {"oom_kills": 1},
    "disk_limit": {"disk_full": True},
    "pids_limit": {"processes_refused": 3},
    "output_limit": {"output_exceeded": True},
    "timeout": {"timed_out": True},
    "nonzero_exit": {"exit_code": 1},
    "no_submission": {"artifact_status": "absent"},
}


def kind_of(report: RunReport) -> str | None:
    failure = find_failure(report)
    return failure.kind.value if failure else None


@pytest.mark.parametrize(("first", "second"), list(combinations(SIGNS, 2)))
def test_of_two_signs_the_stronger_names_the_failure(first: str, second: str) -> None:
    report = replace(CLEAN, **{"exit_code": 1, **SIGNS[second], **SIGNS[first]})  # type: ignore[arg-type]
    assert kind_of(report) == first


@pytest.mark.parametrize("sign", ["oom", "disk_limit", "pids_limit"])
def test_a_limit_met_and_survived_is_no_failure(sign: str) -> None:
    report = replace(CLEAN, **SIGNS[sign])  # type: ignore[arg-type]
    assert kind_of(report) is None
    assert kind_of(replace(report, artifact_status="absent")) == "no_submission"


@pytest.mark.parametrize(
    ("artifact", "expected"),
    [("file", None), ("absent", "no_submission"), ("refused", "invalid_submission")],
)
def test_after_a_clean_exit_the_artifact_decides(artifact: str, expected: str | None) -> None:
    assert kind_of(replace(CLEAN, artifact_status=artifact)) == expected


@pytest.mark.parametrize("code", [1, 2, 125, 137, 139, 255, -9])
def test_every_other_exit_is_an_error_whatever_the_artifact(code: int) -> None:
    assert kind_of(replace(CLEAN, exit_code=code)) == "nonzero_exit"
    # an exit code that looks like a kill is no proof of anything
    assert kind_of(replace(CLEAN, exit_code=code, artifact_status="absent")) == "nonzero_exit"


def test_a_stalled_program_times_out_and_the_message_says_why() -> None:
    failure = find_failure(replace(CLEAN, exit_code=137, stalled_seconds=90.0))
    assert failure is not None
    assert failure.kind is ErrorKind.TIMEOUT
    assert failure.message == "the program made no progress for 90 seconds"
    assert kind_of(replace(CLEAN, exit_code=137, stalled_seconds=90.0, oom_kills=1)) == "oom"


@pytest.mark.parametrize("sign", SIGNS)
def test_a_verdict_always_blames_the_program(sign: str) -> None:
    failure = find_failure(replace(CLEAN, **{"exit_code": 1, **SIGNS[sign]}))  # type: ignore[arg-type]
    assert failure is not None
    assert failure.kind.blame is Blame.PROGRAM
