"""The guard of tests/unit/conftest.py."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = Path(sys.executable).with_name("reward-server")


def test_a_server_cannot_be_started() -> None:
    with pytest.raises(RuntimeError, match="Move the test to tests/integration"):
        subprocess.run([COMMAND, "serve"], check=True)


async def test_postgres_cannot_be_started() -> None:
    with pytest.raises(RuntimeError, match="starts /usr/bin/postgres"):
        await asyncio.create_subprocess_exec("/usr/bin/setpriv", "/usr/bin/postgres")


def test_a_stand_in_may_run(tmp_path: Path) -> None:
    stand_in = tmp_path / "bwrap"
    stand_in.write_text("#!/bin/sh\necho fake\n")
    stand_in.chmod(0o755)
    assert subprocess.run([stand_in], check=True, capture_output=True).stdout == b"fake\n"
