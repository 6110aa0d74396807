"""Starts a server for the duration of a script, with twins for tasks without data."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).parent.parent
COMMAND = Path(sys.executable).with_name("reward-server")
START_SECONDS = 120.0


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield a folder that is deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="reward-server-") as name:
        folder = Path(name)
        # Under root Postgres runs as another account, which must be able to enter the folder.
        folder.chmod(0o755)
        yield folder


@dataclass(frozen=True, slots=True)
class Server:
    """A running server."""

    port: int
    pid: int


@contextmanager
def running_server(data_dir: Path, port: int | None = None, checkout: Path = ROOT) -> Iterator[int]:
    """Run a server on 127.0.0.1 for the duration of the block; yield its port."""
    with serving(data_dir, port, checkout=checkout) as server:
        yield server.port


@contextmanager
def serving(
    data_dir: Path,
    port: int | None = None,
    extra: Mapping[str, str] | None = None,
    checkout: Path = ROOT,
) -> Iterator[Server]:
    """Run a server on 127.0.0.1 with these variables for the duration of the block."""
    command = COMMAND if checkout == ROOT else checkout / ".venv" / "bin" / "reward-server"
    data_dir.mkdir(parents=True, exist_ok=True)
    port = port or _free_port()
    with tempfile.TemporaryFile() as log:
        _prepare_twins(command, data_dir, checkout)
        process = subprocess.Popen(
            [command, "serve", "--port", str(port), "--data-dir", data_dir],
            cwd=checkout,
            env={**os.environ, **(extra or {})},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        try:
            if not _becomes_ready(process, port):
                log.seek(0)
                sys.exit(f"the server did not start:\n{log.read().decode(errors='replace')}")
            yield Server(port, process.pid)
        finally:
            _stop(process)


def _prepare_twins(command: Path, data_dir: Path, checkout: Path) -> None:
    line = [str(command), "tasks", "prepare", "--missing", "--twin", "--data-dir", str(data_dir)]
    done = subprocess.run(line, cwd=checkout, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"the tasks could not be prepared:\n{done.stderr}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _becomes_ready(process: subprocess.Popen[bytes], port: int) -> bool:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if _is_ready(port):
            return True
        time.sleep(0.1)
    return False


def _is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(60)
    finally:
        process.kill()
        process.wait()
