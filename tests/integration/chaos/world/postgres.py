"""A private Postgres that can be restarted, paused and starved of disk space."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, text
from sqlalchemy.exc import SQLAlchemyError

from reward_server.store.engine import make_engine
from reward_server.store.postgres.location import find_location
from tests.conftest import descendants

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sqlalchemy import Row

_DISK_BYTES = 160 << 20
_START_SECONDS = 60.0
_SEGMENTS = 20
_WRITE = "SELECT pg_logical_emit_message(true, '', 'x')"
# Small log segments, so that a full disk fails statements soon.
_SETTINGS = {
    "listen_addresses": "",
    "max_connections": "100",
    "shared_buffers": "16MB",
    "min_wal_size": "2MB",
    "max_wal_size": "8MB",
    "wal_recycle": "off",
    "restart_after_crash": "on",
    "timezone": "UTC",
}


class Postgres:
    """A server in one folder; run as root, its files are on a small disk of their own."""

    def __init__(self, folder: Path) -> None:
        self._place = find_location(folder)
        self.home = self._place.home
        self.has_disk = _mount(self.home)
        self._place.own(self.home)
        self._ballast = self.home / "ballast"
        self._frozen: list[int] = []
        options = ["--auth=trust", "--encoding=UTF8", "--locale=C", "--username=postgres"]
        self._run("initdb", *options, "--wal-segsize=1", "--no-sync")

    def start(self) -> None:
        """Start Postgres; the children of a dead one need a moment to exit."""
        settings = {**_SETTINGS, "unix_socket_directories": str(self.home)}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        command = ["pg_ctl", "start", "-w", "-t", "60", "-l", "log", "-o", shlex.join(options)]
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                return self._run(*command)
            except subprocess.CalledProcessError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)

    def restart(self, mode: str) -> None:
        """Stop Postgres in this mode (`fast`, `immediate`) and start it again."""
        with suppress(subprocess.CalledProcessError):
            self._run("pg_ctl", "stop", "-w", "-t", "60", "-m", mode)
        self.start()

    def stop(self) -> None:
        self.empty_disk()
        self.thaw()
        with suppress(subprocess.CalledProcessError):
            self._run("pg_ctl", "stop", "-w", "-t", "60", "-m", "immediate")
        if self.has_disk:
            self._unmount()
        shutil.rmtree(self.home, ignore_errors=True)

    def _unmount(self) -> None:
        """Unmount the disk once the last killed process has released it."""
        deadline = time.monotonic() + _START_SECONDS
        while subprocess.run(["/bin/umount", self.home], check=False).returncode != 0:
            assert time.monotonic() < deadline, "the disk of Postgres is still in use"
            time.sleep(0.2)

    def freeze(self) -> None:
        """Freeze all its processes."""
        postmaster = self._postmaster()
        if postmaster is not None:
            self._frozen = [postmaster]
            os.kill(postmaster, signal.SIGSTOP)
            self._frozen += descendants(postmaster)
            for pid in self._frozen[1:]:
                _send(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        for pid in reversed(self._frozen):
            _send(pid, signal.SIGCONT)
        self._frozen = []

    def fill_disk(self) -> None:
        """Fill the disk to the last byte."""
        with self._ballast.open("ab", buffering=0) as file, suppress(OSError):
            while file.write(bytes(1 << 16)):
                pass

    def use_up_log(self) -> bool:
        """Make Postgres write its log until that fails; return whether Postgres died of it."""
        try:
            for _ in range(_SEGMENTS):
                asyncio.run(ask(url_of(self.home), _WRITE))
                asyncio.run(ask(url_of(self.home), "SELECT pg_switch_wal()"))
        except (SQLAlchemyError, OSError):
            return True
        return False

    def empty_disk(self) -> None:
        self._ballast.unlink(missing_ok=True)

    def heal(self) -> None:
        """Undo all faults, and start Postgres if it has died."""
        self.empty_disk()
        self.thaw()
        if self._postmaster() is None:
            self.start()

    def _postmaster(self) -> int | None:
        try:
            pid = int((self.home / "data" / "postmaster.pid").read_text().splitlines()[0])
            line = Path(f"/proc/{pid}/cmdline").read_bytes()
        except (OSError, ValueError, IndexError):
            return None
        return pid if os.fsencode(self.home) in line else None

    def _run(self, program: str, *arguments: str) -> None:
        account = {} if self._place.account is None else self._place.account.as_popen()
        with tempfile.TemporaryFile() as output:  # a pipe would stay open in the daemon
            subprocess.run(
                [self._place.programs / program, *arguments],
                check=True,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.home,
                env={"PGDATA": str(self._place.pgdata), "LC_ALL": "C", "PATH": "/usr/bin:/bin"},
                timeout=150,
                **account,
            )


def _mount(home: Path) -> bool:
    if os.geteuid() != 0:
        return False
    line = ["/bin/mount", "-t", "tmpfs", "-o", f"size={_DISK_BYTES},mode=0700", "chaos", str(home)]
    return subprocess.run(line, check=False, capture_output=True).returncode == 0


def _send(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def url_of(socket_dir: Path) -> str:
    query = {"host": str(socket_dir)}
    return URL.create(
        "postgresql", username="postgres", database="postgres", query=query
    ).render_as_string()


@contextmanager
def own_postgres(folder: Path) -> Iterator[Postgres]:
    made = Postgres(folder)
    try:
        made.start()
        yield made
    finally:
        made.stop()


async def ask(
    url: str, question: str, parameters: Mapping[str, Any] | None = None
) -> Sequence[Row[Any]]:
    """Query the database directly."""
    engine = make_engine(url, pool_size=1)
    try:
        async with engine.connect() as connection:
            result = await connection.execute(text(question), parameters)
            return result.all() if result.returns_rows else []
    finally:
        await engine.dispose()
