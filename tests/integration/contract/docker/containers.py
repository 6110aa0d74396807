"""Helpers for tests of containers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from reward_server.errors import InfrastructureError
from reward_server.sandbox.docker.container import Container
from reward_server.sandbox.docker.container_config import LABEL
from tests.integration.contract.boxes import sleeper, until_asleep

if TYPE_CHECKING:
    from reward_server.model import ErrorKind, Execution
    from tests.integration.contract.boxes import Bench

Api = Any  # the engine's library has no types


async def sleeping(bench: Bench, mark: str) -> asyncio.Task[Execution]:
    run = asyncio.create_task(bench.run(sleeper(mark), task_id=mark))
    await until_asleep(mark)
    for box in bench.sandbox._running:  # the server learns of it a little later than this test
        await box.started.wait()
    return run


async def assert_kind(run: asyncio.Task[Execution], kind: ErrorKind) -> None:
    with pytest.raises(InfrastructureError) as caught:
        await run
    assert caught.value.kind is kind


def running_container(bench: Bench) -> Container:
    (box,) = bench.sandbox._running
    assert isinstance(box, Container)
    return box


async def warm_container(bench: Bench) -> Container:
    """Return the container that was started ahead."""
    box: Container = await asyncio.shield(bench.sandbox._slots[0]._warm)
    return box


def own_volumes(api: Api, owner: str) -> list[str]:
    """Return the overlays of a server's containers."""
    found = api.volumes(filters={"label": f"{LABEL}={owner}"})["Volumes"] or ()
    return [volume["Name"] for volume in found]


def own_containers(api: Api, bench: Bench) -> list[str]:
    wanted = {"label": f"{LABEL}={bench.sandbox._base.owner}"}
    return [found["Id"] for found in api.containers(all=True, filters=wanted)]
