"""Every attack is a line of data: a program, what it must be called, what it may earn."""

from __future__ import annotations

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

pytestmark = pytest.mark.finds_orphans


@pytest.mark.parametrize("case", load_cases(), ids=lambda case: case.id)
def test_attack(
    case: Case, kind: str, client: httpx.Client, server: RunningServer, honest: dict[str, Any]
) -> None:
    answer, run_id = attack(client, case)
    assert answer["sandbox"]["kind"] == kind
    assert_outcome(case, answer, honest)
    assert_always(client, server, honest, answer, run_id)


def assert_always(
    client: httpx.Client,
    server: RunningServer,
    honest: dict[str, Any],
    answer: dict[str, Any],
    run_id: str,
) -> None:
    assert client.get("/livez").status_code == 200
    assert score(client, HONEST)["reward"] == honest["reward"]
    assert box_processes(server, answer["sandbox"]["kind"]) == []
    rows = client.get("/v1/solutions", params={"run_id": run_id}).json()["solutions"]
    assert [row["job_id"] for row in rows] == [answer["job_id"]]
    assert_well_formed(answer)
    assert str(server.data_dir) not in str(answer)
