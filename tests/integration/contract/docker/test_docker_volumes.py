"""Every container reads through overlays of its own, which are removed with it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from reward_server.model import ErrorKind
from reward_server.sandbox.docker.container_config import LABEL
from tests.conftest import IMAGE
from tests.integration.contract.boxes import DONE, docker, started, unique
from tests.integration.contract.docker.containers import (
    Api,
    assert_kind,
    own_volumes,
    running_container,
    sleeping,
    warm_container,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.integration.contract.boxes import Bench


@pytest.fixture
def old_volume(api: Api) -> Iterator[str]:
    """What an earlier version has left: the box scripts as they were then."""
    name = unique("reward-server-inside")
    api.create_volume(name, labels={LABEL: "inside"})
    yield name
    if name in {volume["Name"] for volume in api.volumes()["Volumes"]}:
        api.remove_volume(name)


async def test_the_overlays_of_a_container_are_removed_with_it(
    public_folder: Path, api: Api
) -> None:
    async with started(docker(1), public_folder) as bench:
        owner = bench.sandbox._base.owner
        for number in range(6):
            await bench.run((DONE, "raise ValueError", "import os; os.abort()")[number % 3])
        await warm_container(bench)
        assert len(own_volumes(api, owner)) == 2  # of the one that waits: its code and its data
    assert own_volumes(api, owner) == []


async def test_overlays_left_by_others_are_removed(container: Bench, api: Api) -> None:
    """Somebody removes a running container, and not what belongs to it."""
    container.sandbox._slots[0]._keeps_warm = False
    run = await sleeping(container, unique("views"))
    api.remove_container(running_container(container).container_id, force=True)
    await assert_kind(run, ErrorKind.SANDBOX_LOST)
    left = own_volumes(api, container.sandbox._base.owner)
    assert len(left) == 2
    assert not set(left) & set(await container.sandbox._engine.remove_stale(3600))
    assert set(left) <= set(await container.sandbox._engine.remove_stale(0))
    assert own_volumes(api, container.sandbox._base.owner) == []


async def test_overlays_in_use_are_never_stale(container: Bench) -> None:
    run = await sleeping(container, unique("views"))
    await container.sandbox._engine.remove_stale(0)
    state = await container.sandbox._engine.inspect_state(running_container(container).container_id)
    assert state["Running"]
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run


async def test_removed_box_scripts_are_restored(container: Bench, api: Api) -> None:
    container.sandbox._slots[0]._keeps_warm = False
    api.remove_volume(container.sandbox._base.layers.volume)
    assert (await container.run(DONE)).failure is None


async def test_box_scripts_of_earlier_versions_are_removed_at_the_start(
    old_volume: str, public_folder: Path, api: Api
) -> None:
    async with started(docker(1), public_folder) as bench:
        assert (await bench.run(DONE)).failure is None
        names = {volume["Name"] for volume in api.volumes()["Volumes"]}
        assert old_volume not in names
        assert bench.sandbox._base.layers.volume in names


async def test_box_scripts_in_use_are_not_removed(
    old_volume: str, public_folder: Path, api: Api
) -> None:
    mount = {"Type": "volume", "Source": old_volume, "Target": "/inside"}
    config = {"Image": IMAGE, "Entrypoint": ["sh"], "HostConfig": {"Mounts": [mount]}}
    user = api.create_container_from_config(config)["Id"]
    try:
        async with started(docker(1), public_folder):
            assert old_volume in {volume["Name"] for volume in api.volumes()["Volumes"]}
    finally:
        api.remove_container(user)
