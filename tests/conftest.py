"""A real server on loopback: embedded Postgres, bubblewrap boxes, twins of all tasks."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

ROOT = Path(__file__).parent.parent
COMMAND = Path(sys.executable).with_name("reward-server")
START_SECONDS = 120.0
SANDBOXES = tuple(os.environ.get("TEST_SANDBOXES", "zygote,bubblewrap").split(","))
# A vLLM that `.ci/lm` started, and its process group; without one tests/integration/lm is left
# out. Removed from the environment, where a server would refuse them as unknown settings.
LM_URL = os.environ.pop("REWARD_SERVER_TEST_LM_URL", None)
LM_PID = int(os.environ.pop("REWARD_SERVER_TEST_LM_PID", "0"))
# Trainers are in an environment of their own, whose pytest `make test-trainers` uses.
TRAINERS = [] if find_spec("verl") else ["verl", "trl", "adapters", "lab"]
collect_ignore = [f"integration/{name}" for name in [*([] if LM_URL else ["lm"]), *TRAINERS]]
IMAGE = "reward-server-cpu"
TWINS = "TEST_TWINS_FOLDER"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "reward-server"
if not set(SANDBOXES) <= {"bubblewrap", "zygote", "docker"}:
    message = f"TEST_SANDBOXES names an unknown sandbox: {SANDBOXES}"
    raise pytest.UsageError(message)


def sandbox_settings(kind: str) -> dict[str, str]:
    """Return what makes a server use this kind of sandbox."""
    if kind == "docker":
        return {"REWARD_SERVER_SANDBOX__KIND": kind, "REWARD_SERVER_SANDBOX__IMAGE": IMAGE}
    return {
        "REWARD_SERVER_SANDBOX__KIND": kind,
        "REWARD_SERVER_SANDBOX__ENVIRONMENT": str(ROOT / ".venv-sandbox"),
    }


# A server has one sandbox; where several are under test, the first named serves.
SANDBOX = sandbox_settings(SANDBOXES[0])
SMALL_LIMITS = {
    "REWARD_SERVER_LIMITS__MEMORY_BYTES": str(512 << 20),
    "REWARD_SERVER_LIMITS__DISK_BYTES": str(64 << 20),
    "REWARD_SERVER_LIMITS__PROCESSES": "64",
    "REWARD_SERVER_LIMITS__OUTPUT_BYTES": str(16 << 20),
}


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server process and how to reach it."""

    url: str
    pid: int
    log: Path
    data_dir: Path


def children(pid: int) -> list[int]:
    texts = [file.read_text() for file in Path(f"/proc/{pid}/task").glob("*/children")]
    return [int(part) for text in texts for part in text.split()]


def descendants(pid: int) -> list[int]:
    found = children(pid)
    return found + [lower for child in found for lower in descendants(child)]


def read_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def is_alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def wait_until(happens: Callable[[], object], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def start_process(
    words: Sequence[str], log: Path, extra: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    with log.open("ab") as output:
        return subprocess.Popen(
            [COMMAND, *words],
            env={**os.environ, **SMALL_LIMITS, **extra},
            stdout=output,
            stderr=output,
            cwd=ROOT,
        )


def start_server(
    data_dir: Path,
    log: Path,
    extra: Mapping[str, str] | None = None,
    sandbox: Mapping[str, str] = SANDBOX,
    *options: str,
    port: int | None = None,
) -> tuple[subprocess.Popen[bytes], str]:
    port = port or free_port()
    words = ["serve", "--port", str(port), "--data-dir", str(data_dir), *options]
    process = start_process(words, log, {**sandbox, **(extra or {})})
    url = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            if httpx.get(f"{url}/readyz").status_code == 200:
                return process, url
        except httpx.TransportError:
            time.sleep(0.1)
    process.kill()
    process.wait()
    pytest.fail(f"the server did not start:\n{log.read_text()}")


def stop_server(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(60)
    finally:
        process.kill()
        process.wait()


def pytest_configure(config: pytest.Config) -> None:
    """Make a folder for all processes of this run, each of which finds it in its environment."""
    if TWINS in os.environ:
        return
    # Not pytest's own folder: that is closed to the account Postgres runs as under root.
    folder = Path(tempfile.mkdtemp(prefix="reward-server-twins-"))
    folder.chmod(0o755)
    os.environ[TWINS] = str(folder)
    config.add_cleanup(lambda: shutil.rmtree(folder))


def digest_preparation() -> str:
    """Return a digest of all that decides what prepared twins look like."""
    digest = hashlib.sha256(sys.version.encode())
    digest.update("".join(version(name) for name in ("numpy", "pandas", "pillow")).encode())
    for package in ("tasks", "grade"):
        for path in sorted((ROOT / "reward_server" / package).rglob("*.*")):
            if path.is_file() and path.suffix != ".pyc":
                digest.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def copy_twins(target: Path) -> None:
    """Copy twins of all built-in tasks, which are prepared again only if their code changed."""
    CACHE.mkdir(parents=True, exist_ok=True)
    kept = CACHE / f"twins-{digest_preparation()}"
    with (CACHE / "twins.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            for outdated in sorted(CACHE.glob("twins-*"), key=lambda path: path.stat().st_mtime)[
                :-4
            ]:
                shutil.rmtree(outdated)
            part = CACHE / f"twins-{os.getpid()}.part"
            options = ["--missing", "--twin", "--data-dir", str(part)]
            subprocess.run([COMMAND, "tasks", "prepare", *options], check=True, cwd=ROOT)
            part.rename(kept)
        shutil.copytree(kept, target, dirs_exist_ok=True)


@pytest.fixture(scope="session")
def data_dir() -> Iterator[Path]:
    """Give this process links to twins of all tasks, which the processes of a run share."""
    shared = Path(os.environ[TWINS])
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not any(shared.glob("*/prepared")):
            copy_twins(shared)
    with tempfile.TemporaryDirectory(prefix="reward-server-test-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        for twin in shared.glob("*/prepared"):
            (folder / twin.parent.name).symlink_to(twin.parent)
        yield folder


@pytest.fixture(scope="session")
def server(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    log = tmp_path_factory.mktemp("server") / "log"
    process, url = start_server(data_dir, log)
    try:
        yield RunningServer(url, process.pid, log, data_dir)
    finally:
        stop_server(process)


@pytest.fixture(scope="session")
def client(server: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=300) as client:
        yield client
