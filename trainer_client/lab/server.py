"""Starts the lab's reward server, with as many slots as samples in flight.

Training on the first B of m·B samples favours fast programs only if all of them run at the same
time. The lab has more slots than cores, so programs share cores and all of them take longer than
on a larger machine.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from trainer_client.client.blocking import RewardClient

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_START_SECONDS = 300.0


@contextmanager
def serving(command: Path, data_dir: Path, settings: Mapping[str, str]) -> Iterator[RewardClient]:
    """Serve on loopback until the block ends.

    Raises:
        RuntimeError: the server does not start; its log says why.
    """
    port, log = _free_port(), data_dir / "server.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            [command, "serve", "--port", str(port), "--data-dir", data_dir],
            env={**os.environ, **settings},
            stdout=output,
            stderr=output,
        )
    try:
        with RewardClient(f"http://127.0.0.1:{port}") as client:
            _wait(client, process, log)
            yield client
    finally:
        process.terminate()
        process.wait()


def _wait(client: RewardClient, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if client.ready():
            return
        time.sleep(0.2)
    message = f"the reward server did not start; see {log}"
    raise RuntimeError(message)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def beside_python() -> Path:
    """Return the server's command in this interpreter's own environment."""
    return Path(sys.executable).with_name("reward-server")
