"""`compose.yaml` as it is: Postgres and the server in containers, and boxes beside them."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from docker import errors

from reward_server.sandbox.docker.container_config import LABEL
from reward_server.sandbox.docker.engine import ContainerEngine, find_engine
from tests.conftest import START_SECONDS, free_port
from tests.integration.attacks.cases import HONEST, TASK
from tests.integration.contract.boxes import ROOT, sleeper, unique, until_asleep, until_gone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.contract.docker.containers import Api

KEY = "a-key-of-this-test-alone"
PROGRAM = ["docker-compose"] if shutil.which("docker-compose") else ["docker", "compose"]


@dataclass(frozen=True, slots=True)
class ComposeProject:
    """A server that was started by `compose.yaml`."""

    client: httpx.Client
    project: str

    def container(self, api: Api, service: str) -> dict[str, Any]:
        names = (f"project={self.project}", f"service={service}")
        wanted = {"label": [f"com.docker.compose.{name}" for name in names]}
        (found,) = api.containers(all=True, filters=wanted)
        described: dict[str, Any] = api.inspect_container(found["Id"])
        return described


@pytest.fixture(scope="module")
def postgres_image(api: Api) -> Iterator[None]:
    """The image that the file names, or one of our own under its name."""
    try:
        api.inspect_image("postgres:16")
        yield
    except errors.ImageNotFound:
        folder = Path(__file__).with_name("postgres_image")
        line: list[str | Path] = [
            "docker",
            "build",
            "--quiet",
            "--network",
            "none",
            "--tag",
            "postgres:16",
            folder,
        ]
        subprocess.run(line, env={**os.environ, "DOCKER_BUILDKIT": "0"}, check=True)
        yield
        api.remove_image("postgres:16", force=True)


@pytest.fixture(scope="module")
def composed(postgres_image: None, api: Api) -> Iterator[ComposeProject]:
    del postgres_image
    project, port = unique("compose"), free_port()
    folder = Path(tempfile.mkdtemp(prefix="compose-"))
    folder.chmod(0o755)
    environment = {
        **os.environ,
        "DATA_DIR": str(folder),
        "DOCKER_SOCKET": find_engine(None).removeprefix("unix://"),
        "PORT": str(port),
        "POSTGRES_PASSWORD": "word",
        "REWARD_SERVER_API_KEY": KEY,
    }
    compose: list[str | Path] = [
        *PROGRAM,
        "--project-name",
        project,
        "--file",
        ROOT / "compose.yaml",
    ]
    headers = {"Authorization": f"Bearer {KEY}"}
    try:
        subprocess.run([*compose, "up", "--detach"], env=environment, check=True)
        with httpx.Client(
            base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=120
        ) as client:
            found = ComposeProject(client, project)
            until_ready(found, api)
            yield found
    finally:
        subprocess.run([*compose, "down", "--volumes"], env=environment, check=True)
        shutil.rmtree(folder)


def until_ready(composed: ComposeProject, api: Api) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            if composed.client.get("/readyz").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.3)
    server = composed.container(api, "server")
    pytest.fail(api.logs(server["Id"]).decode())


def test_an_honest_program_is_scored_beside_the_server(composed: ComposeProject) -> None:
    answer = composed.client.post("/score", json={"task_id": TASK, "code": HONEST}).json()
    assert (answer["status"], answer["valid"], answer["error"]) == ("scored", True, None), answer
    assert answer["sandbox"]["kind"] == "docker"


def test_a_wrong_api_key_is_refused(composed: ComposeProject) -> None:
    body = {"task_id": TASK, "code": HONEST}
    answer = composed.client.post("/score", json=body, headers={"Authorization": "Bearer other"})
    assert answer.status_code == 401


def test_the_server_holds_the_socket_and_nothing_else(composed: ComposeProject, api: Api) -> None:
    host = composed.container(api, "server")["HostConfig"]
    assert (host["CapDrop"], host["CapAdd"], host["Privileged"]) == (["ALL"], None, False)
    assert "no-new-privileges:true" in host["SecurityOpt"]


async def test_a_server_that_is_killed_takes_its_boxes_along(
    composed: ComposeProject, api: Api
) -> None:
    mark = unique("composed")
    body = {"task_id": TASK, "code": sleeper(mark), "wait_seconds": 0}
    answer = await asyncio.to_thread(composed.client.post, "/score", json=body)
    assert answer.status_code == 202, answer.text
    await until_asleep(mark)
    (box,) = (box for box in running(api) if mark in str(api.top(box)))
    api.kill(composed.container(api, "server")["Id"])
    async with asyncio.timeout(20):
        await until_gone(mark)
        while box in running(api):  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.05)
    engine = ContainerEngine(None, 1)
    try:
        assert box in await engine.remove_stale(0)
    finally:
        engine.close()


def running(api: Api) -> set[str]:
    return {found["Id"] for found in api.containers(filters={"label": LABEL})}
