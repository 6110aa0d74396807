"""Attacks on what a program may use, sent as bare programs: named alike, and nothing is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reward_server.sandbox.bubblewrap.cgroups import missing_limits
from tests.integration.attacks.cases import Case, load_cases
from tests.integration.attacks.leftovers import box_processes

if TYPE_CHECKING:
    import httpx

    from tests.conftest import RunningServer

pytestmark = pytest.mark.finds_orphans

LIMITS = ("oom", "output_limit", "disk_limit", "pids_limit", "timeout")
SINGLE = [case for case in load_cases() if case.is_single]
CASES = [case for kind in LIMITS for case in [c for c in SINGLE if c.error == kind][:3]]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_an_attack_as_a_bare_program_is_named_and_leaves_nothing(
    case: Case, kind: str, client: httpx.Client, server: RunningServer
) -> None:
    asked = {"code": case.program, "language": "python", "run_timeout": case.wall_seconds or 120}
    response = client.post("/run_code", json=asked)
    assert response.status_code == 200, response.text
    expected = case.error_in.get(kind, case.error)
    if missing_limits():
        expected = case.error_without_cgroups or expected
    answer = response.json()
    assert answer["status"] == "Failed"
    assert answer["run_result"]["error_kind"] == expected
    assert box_processes(server, kind) == []
    after = client.post("/run_code", json={"code": "print(1)", "language": "python"}).json()
    assert after["run_result"]["stdout"] == "1\n"
