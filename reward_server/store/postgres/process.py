"""The Postgres server process: finds, starts and stops it.

The binaries come from a wheel. The server listens on a Unix socket that only its own account and
root can open, never on TCP.
"""

from __future__ import annotations

import logging
import os
import pwd
import re
import shlex
import shutil
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reward_server.errors import SetupError

if TYPE_CHECKING:
    from reward_server.store.postgres.location import PostgresLocation

log = logging.getLogger(__name__)

START_SECONDS = 120.0
_STOP_SECONDS = 60
POLL_SECONDS = 0.05
_ORIGIN = "started-in"
_LOGS = ("setup.log", "log")
_SOCKET_NAME = "/.s.PGSQL.5432"
_SOCKET_PATH_BYTES = 107
_PLAIN_PATH = re.compile(r"[A-Za-z0-9/_.+-]+")
_SETTINGS = {
    "listen_addresses": "",
    "port": "5432",
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "shared_buffers": "64MB",
    "max_wal_size": "256MB",
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "jit": "off",
    "timezone": "UTC",
    "log_checkpoints": "off",
}


@dataclass(frozen=True, slots=True)
class PostgresProcess:
    """The postmaster of a running Postgres."""

    socket_dir: Path | None
    is_ready: bool


def find_postgres(location: PostgresLocation) -> PostgresProcess | None:
    """Return the postmaster of a location, if this process can see one.

    Raises:
        SetupError: when its files cannot be read.
    """
    try:
        lines = (location.pgdata / "postmaster.pid").read_text().splitlines()
        is_alive = _is_postmaster(int(lines[0]), location)
    except (FileNotFoundError, ProcessLookupError, ValueError, IndexError):
        return None
    except OSError as error:
        text = f"cannot determine whether Postgres runs in {location.home}: {error}"
        raise SetupError(text) from error
    if not is_alive:
        return None
    lines += [""] * (8 - len(lines))
    socket_dir = Path(lines[4]) if lines[4] else None
    return PostgresProcess(socket_dir, is_ready=lines[7].strip() == "ready")


def _is_postmaster(pid: int, location: PostgresLocation) -> bool:
    # The kernel may have given the PID to another process. The check reads the command line, which
    # everyone may read; the working directory of another account's process takes a capability that
    # root in a container lacks.
    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return words[1:3] == [b"-D", os.fsencode(location.pgdata)]


def wait_until_ready(location: PostgresLocation) -> Path:
    """Return the folder of the socket once Postgres takes connections.

    Raises:
        SetupError: when it does not; the text names the remedy.
    """
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        postmaster = find_postgres(location)
        if postmaster is None:
            break
        if postmaster.is_ready and postmaster.socket_dir is not None:
            return postmaster.socket_dir
        time.sleep(POLL_SECONDS)
    stop(location)
    raise _unable(location, "Postgres does not become ready")


def start(location: PostgresLocation, socket_dir: Path | None = None) -> None:
    """Start Postgres, in a new database if there is none; a given folder has the socket again.

    Raises:
        SetupError: when it does not start; the text names the remedy.
    """
    if not (location.pgdata / "PG_VERSION").exists():
        _initialise(location)
    for stale in (location.pgdata / "postmaster.pid", *location.home.glob(".s.PGSQL.*")):
        stale.unlink(missing_ok=True)
    (location.home / _ORIGIN).write_text(_origin())
    directory = _socket_dir(location) if socket_dir is None else socket_dir
    settings = _SETTINGS | {"unix_socket_directories": str(directory)}
    options = ["-D", str(location.pgdata)]
    options += [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    command = ["pg_ctl", "start", "-w", "-t", str(_STOP_SECONDS), "-l", "log", "-o"]
    deadline = time.monotonic() + START_SECONDS
    _rotate_logs(location)
    while not _succeeds(location, *command, shlex.join(options)):
        # The children of a killed postmaster need a moment to notice its death and exit.
        has_orphans = "pre-existing shared memory block" in _log_tail(location)
        if not has_orphans or time.monotonic() > deadline:
            raise _unable(location, "Postgres does not start")
        time.sleep(0.5)
        _rotate_logs(location)


def _initialise(location: PostgresLocation) -> None:
    _require_named_account(location)
    fresh = Path(tempfile.mkdtemp(prefix="new-", dir=location.home))
    location.own(fresh)
    options = ["--auth=trust", "--encoding=UTF8", "--locale=C", "--username=postgres"]
    if not _succeeds(location, "initdb", *options, pgdata=fresh):
        shutil.rmtree(fresh, ignore_errors=True)
        raise _unable(location, "the database cannot be initialised")
    fresh.rename(location.pgdata)


def _require_named_account(location: PostgresLocation) -> None:
    uid = os.geteuid() if location.account is None else location.account.uid
    try:
        pwd.getpwuid(uid)
    except KeyError:
        text = f"Postgres cannot be initialised by user {uid}, who has no line in /etc/passwd"
        raise SetupError(text + "; add one, run as another user, or set DATABASE_URL") from None


def was_started_here(location: PostgresLocation) -> bool:
    """Return whether this boot and PID namespace started Postgres, so its processes are visible."""
    try:
        return (location.home / _ORIGIN).read_text() == _origin()
    except OSError:
        return False


def _origin() -> str:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot} {Path('/proc/self/ns/pid').readlink()}\n"


def stop(location: PostgresLocation) -> None:
    """Stop Postgres, orderly if possible."""
    for mode in ("fast", "immediate"):
        if _succeeds(location, "pg_ctl", "stop", "-w", "-t", str(_STOP_SECONDS), "-m", mode):
            return
    log.error("the embedded Postgres in %s does not stop", location.home)


def _socket_dir(location: PostgresLocation) -> Path:
    if _fits(location.home):
        return location.home
    directory = Path(tempfile.mkdtemp(prefix="reward-postgres-"))
    location.own(directory)
    if _fits(directory):
        return directory
    directory.rmdir()
    text = f"the paths {location.home} and {directory.parent} are too long for a Unix socket"
    raise SetupError(text + "; choose a shorter data directory or set TMPDIR=/tmp")


def _fits(directory: Path) -> bool:
    path = str(directory)
    is_short = len((path + _SOCKET_NAME).encode()) <= _SOCKET_PATH_BYTES
    return is_short and _PLAIN_PATH.fullmatch(path) is not None


def drop_socket_dir(location: PostgresLocation, socket_dir: Path | None) -> None:
    """Remove the folder of a socket that is outside of the location."""
    if socket_dir is not None and socket_dir != location.home:
        with suppress(OSError):
            socket_dir.rmdir()


def _succeeds(
    location: PostgresLocation, program: str, *arguments: str, pgdata: Path | None = None
) -> bool:
    environment = {"PGDATA": str(pgdata or location.pgdata), "LC_ALL": "C", "PATH": "/usr/bin:/bin"}
    account = {} if location.account is None else location.account.as_popen()
    # A pipe would stay open in the daemon that pg_ctl leaves behind.
    with (location.home / "setup.log").open("ab") as output:
        try:
            done = subprocess.run(
                [location.programs / program, *arguments],
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=location.home,
                env=environment,
                timeout=2 * _STOP_SECONDS,
                **account,
            )
        except (OSError, subprocess.SubprocessError) as error:
            output.write(f"{program}: {error}\n".encode())
            return False
    return done.returncode == 0


def _rotate_logs(location: PostgresLocation) -> None:
    for name in _LOGS:
        with suppress(FileNotFoundError):
            (location.home / name).replace(location.home / f"{name}.old")


def _log_tail(location: PostgresLocation) -> str:
    tails = []
    for name in _LOGS:
        with suppress(OSError):
            tails.append((location.home / name).read_text(errors="replace")[-1000:])
    return "\n".join(tails)


def _unable(location: PostgresLocation, what: str) -> SetupError:
    log.error("%s; its log ends with:\n%s", what, _log_tail(location))
    home = location.home
    text = f"{what} in {home}; read {home / 'log'} and {home / 'setup.log'}, free disk space and"
    return SetupError(text + " memory, or set DATABASE_URL")
