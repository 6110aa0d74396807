"""All attacks at once, in random order, with honest programs in between: as when alone.

The order is drawn from a seed that is printed; `ATTACKS_SEED` repeats it.
"""

from __future__ import annotations

import os
import random
import secrets
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.attacks.cases import (
    HONEST,
    Case,
    assert_outcome,
    assert_well_formed,
    attack,
    load_cases,
    score,
)
from tests.integration.attacks.leftovers import box_processes

if TYPE_CHECKING:
    import httpx

    from tests.conftest import RunningServer

pytestmark = pytest.mark.alone
EVERY = 4  # an honest program after so many attacks
HONEST_CASE = Case("honest", "an honest program", HONEST, reward="score")


def mixed(seed: int) -> list[Case]:
    cases = [case for case in load_cases() if case.alone is None]
    random.Random(seed).shuffle(cases)  # noqa: S311 - an order, not a secret
    groups = [cases[start : start + EVERY] for start in range(0, len(cases), EVERY)]
    return [case for group in groups for case in (*group, HONEST_CASE)]


def complaint(
    client: httpx.Client, server: RunningServer, case: Case, honest: dict[str, Any]
) -> str | None:
    """Carry out one attack among the others; return what was not as it should be."""
    try:
        answer, run_id = attack(client, case)
        assert_outcome(case, answer, honest)
        assert_well_formed(answer)
        rows = client.get("/v1/solutions", params={"run_id": run_id}).json()["solutions"]
        assert [row["job_id"] for row in rows] == [answer["job_id"]]
        assert str(server.data_dir) not in str(answer)
    except AssertionError as error:
        return f"{case.id}: {error}"
    return None


def test_all_attacks_at_once_end_as_they_do_alone(
    kind: str, client: httpx.Client, server: RunningServer, honest: dict[str, Any]
) -> None:
    seed = int(os.environ.get("ATTACKS_SEED") or secrets.randbits(32))
    print(f"ATTACKS_SEED={seed}")  # noqa: T201 - shown when the test fails
    in_flight = 2 * len(os.sched_getaffinity(0)) + 1
    with ThreadPoolExecutor(in_flight) as pool:
        run = [pool.submit(complaint, client, server, case, honest) for case in mixed(seed)]
        complaints = [text for future in run if (text := future.result()) is not None]
    assert complaints == [], f"ATTACKS_SEED={seed}"
    assert client.get("/livez").status_code == 200
    assert score(client, HONEST)["reward"] == honest["reward"]
    assert box_processes(server, kind) == []
