"""The engine makes the containers that are requested, and what is missing is reported."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from reward_server.errors import SetupError
from reward_server.sandbox.docker import runc
from reward_server.sandbox.docker.container_config import ContainerPlan, SlotIdentity, build_config
from reward_server.sandbox.docker.engine import describe
from tests.conftest import IMAGE
from tests.integration.contract.boxes import (
    DONE,
    FIRST_UID,
    LIMITS,
    docker,
)
from tests.integration.contract.docker.containers import Api, warm_container

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.contract.boxes import Bench


def example_plan(public: Path, cores: tuple[int, ...] = (0,)) -> ContainerPlan:
    return ContainerPlan.of("task", str(public), (0, 0), cores, LIMITS)


async def test_the_engine_makes_what_the_table_says(container: Bench, api: Api) -> None:
    await container.run(DONE)
    seen = api.inspect_container((await warm_container(container)).container_id)
    sandbox = container.sandbox
    plan = example_plan(container.public, sandbox._slot_cores[0])
    wanted = build_config(sandbox._base, sandbox._slots[0].identity, plan)
    host, config = wanted.pop("HostConfig"), seen["Config"]
    differing = {
        key: (value, config.get(key))
        for key, value in wanted.items()
        if config.get(key) != value and key not in {"Env", "Labels", "NetworkDisabled"}
    }
    assert differing == {}
    assert set(wanted["Env"]) <= set(config["Env"])
    assert wanted["Labels"].items() <= config["Labels"].items()
    made = seen["HostConfig"]
    differing = {
        key: (value, made.get(key))
        for key, value in host.items()
        if (made.get(key) or None) != (value or None) and key != "Ulimits"
    }
    assert differing == {}
    assert all(limit in made["Ulimits"] for limit in host["Ulimits"])
    assert seen["Image"] == sandbox._base.image


def test_devices_are_requested_by_name(api: Api, container: Bench) -> None:
    """No such device is here; the engine keeps the request as it was sent."""
    identity = SlotIdentity(FIRST_UID, ("GPU-1", "GPU-2"))
    config = build_config(container.sandbox._base, identity, example_plan(container.public))
    made = api.create_container_from_config(config)["Id"]
    try:
        (request,) = api.inspect_container(made)["HostConfig"]["DeviceRequests"]
    finally:
        api.remove_container(made)
    assert request["DeviceIDs"] == ["GPU-1", "GPU-2"]
    assert request["Capabilities"] == [["gpu", "compute"]]


async def test_a_device_that_is_not_there_is_our_fault() -> None:
    sandbox = docker(1, gpus=("GPU-1",))
    with pytest.raises(SetupError, match="no container can be started"):
        await sandbox.start()
    await sandbox.aclose()


async def test_devices_are_shared_out_among_the_slots() -> None:
    sandbox = docker(2, gpus=("0", "1", "2"))
    sandbox._run_probe = lambda: asyncio.sleep(0)  # type: ignore[method-assign]
    try:
        await sandbox.start()
        assert [slot.identity.gpus for slot in sandbox._slots] == [("0", "2"), ("1",)]
    finally:
        await sandbox.aclose()


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"engine": "unix:///nonexistent.sock"}, "install and start Docker"),
        ({"runtime": "no-such-runtime"}, "no container can be started"),
    ],
)
async def test_what_is_missing_is_named_at_the_start(more: dict[str, Any], text: str) -> None:
    sandbox = docker(1, **more)
    with pytest.raises(SetupError, match=text):
        await sandbox.start()
    await sandbox.aclose()


async def test_a_runc_that_programs_can_leave_is_refused_at_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The lane's own passes: it is new, or patched by its distribution."""
    engine, _ = describe(None, IMAGE)
    assert IMAGE in engine
    monkeypatch.setattr(runc, "_FIRST_FIX", (1000,))
    monkeypatch.setattr(runc, "_PATCHED", ())
    with pytest.raises(SetupError, match="CVE-2024-21626"):
        describe(None, IMAGE)
    sandbox = docker(1)
    with pytest.raises(SetupError, match="CVE-2024-21626"):
        await sandbox.start()
    await sandbox.aclose()
    assert describe(None, IMAGE, "runsc")[1] is None


def test_a_missing_image_is_reported_with_its_remedy() -> None:
    with pytest.raises(SetupError, match="make images"):
        describe(None, "no-such-image")
