"""The embedded Postgres: the real server, from a wheel, in the data directory.

Only the wheel's binaries are used. Several processes may use one data directory: the first
starts Postgres, the others join it, and the last to leave stops it. Who is present is known
by shared file locks, which the kernel drops when a process dies. A Postgres that outlived a
killed server is joined. It listens on a Unix socket that only its own account and root can
open, never on TCP.
"""

from __future__ import annotations

import fcntl
import logging
import os
import pwd
import re
import shlex
import shutil
import subprocess
import tempfile
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from sqlalchemy import URL

from reward_server.errors import SetupError
from reward_server.store.placement import find_place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reward_server.store.placement import Place

log = logging.getLogger(__name__)

_START_SECONDS = 120.0
_STOP_SECONDS = 60
_POLL_SECONDS = 0.05
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
class _Postmaster:
    socket_dir: Path | None
    is_ready: bool


@contextmanager
def embedded_postgres(data_dir: Path) -> Iterator[str]:
    """Run Postgres in `<data_dir>/postgres` for as long as the block lasts; yield its URL.

    Raises:
        SetupError: when it cannot be started; the text names the remedy.
    """
    place = find_place(data_dir)
    with ExitStack() as stack:
        users = stack.enter_context(_open_lock(place, "users.lock"))
        with _starting(place):
            fcntl.flock(users, fcntl.LOCK_SH)
            socket_dir = _join_or_start(place, users)
        stack.callback(_leave, place, users)
        yield _url(socket_dir)


def _url(socket_dir: Path) -> str:
    url = URL.create(
        "postgresql+asyncpg",
        username="postgres",
        database="postgres",
        query={"host": str(socket_dir)},
    )
    return url.render_as_string(hide_password=False)


def _open_lock(place: Place, name: str) -> IO[bytes]:
    path = place.home / name
    try:
        return path.open("ab")
    except OSError as error:
        text = f"cannot open {path}: {error}; run the server as the owner of the data directory"
        raise SetupError(text) from error


@contextmanager
def _starting(place: Place) -> Iterator[None]:
    deadline = time.monotonic() + _START_SECONDS
    with _open_lock(place, "start.lock") as lock:
        while not _locked(lock):
            if time.monotonic() > deadline:
                text = f"another process has been starting Postgres in {place.home} for too long"
                raise SetupError(text + "; stop it and try again")
            time.sleep(_POLL_SECONDS)
        yield


def _locked(lock: IO[bytes]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _join_or_start(place: Place, users: IO[bytes]) -> Path:
    if _running(place) is None:
        is_alone = _locked(users)
        fcntl.flock(users, fcntl.LOCK_SH)
        if not is_alone:
            text = f"a process that this one cannot see uses the database in {place.home}"
            raise SetupError(text + "; stop it, or give this server another data directory")
        _start(place)
    return _wait_until_ready(place)


def _leave(place: Place, users: IO[bytes]) -> None:
    with _starting(place):
        is_last = _locked(users)
        postmaster = _running(place)
        if is_last and postmaster is not None:
            _stop(place)
            _drop_socket_dir(place, postmaster.socket_dir)
        fcntl.flock(users, fcntl.LOCK_UN)


def _running(place: Place) -> _Postmaster | None:
    try:
        lines = (place.pgdata / "postmaster.pid").read_text().splitlines()
        is_alive = _is_postmaster(int(lines[0]), place)
    except (OSError, ValueError, IndexError):
        return None
    if not is_alive:
        return None
    lines += [""] * (8 - len(lines))
    socket_dir = Path(lines[4]) if lines[4] else None
    return _Postmaster(socket_dir, is_ready=lines[7].strip() == "ready")


def _is_postmaster(pid: int, place: Place) -> bool:
    # The number may meanwhile belong to another process. A command line can be read by all;
    # the working directory of another account's process takes a capability that root in a
    # container lacks.
    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return words[1:3] == [b"-D", os.fsencode(place.pgdata)]


def _wait_until_ready(place: Place) -> Path:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        postmaster = _running(place)
        if postmaster is None:
            break
        if postmaster.is_ready and postmaster.socket_dir is not None:
            return postmaster.socket_dir
        time.sleep(_POLL_SECONDS)
    _stop(place)
    raise _unable(place, "Postgres does not become ready")


def _start(place: Place) -> None:
    if not (place.pgdata / "PG_VERSION").exists():
        _initialise(place)
    for stale in (place.pgdata / "postmaster.pid", *place.home.glob(".s.PGSQL.*")):
        stale.unlink(missing_ok=True)
    settings = _SETTINGS | {"unix_socket_directories": str(_socket_dir(place))}
    options = ["-D", str(place.pgdata)]
    options += [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    command = ["pg_ctl", "start", "-w", "-t", str(_STOP_SECONDS), "-l", "log", "-o"]
    deadline = time.monotonic() + _START_SECONDS
    _put_logs_aside(place)
    while not _succeeds(place, *command, shlex.join(options)):
        # The children of a killed postmaster need a moment to notice that it is gone.
        has_heirs = "pre-existing shared memory block" in _log_tail(place)
        if not has_heirs or time.monotonic() > deadline:
            raise _unable(place, "Postgres does not start")
        time.sleep(0.5)
        _put_logs_aside(place)


def _initialise(place: Place) -> None:
    _require_named_account(place)
    fresh = Path(tempfile.mkdtemp(prefix="new-", dir=place.home))
    place.own(fresh)
    options = ["--auth=trust", "--encoding=UTF8", "--locale=C", "--username=postgres"]
    if not _succeeds(place, "initdb", *options, pgdata=fresh):
        shutil.rmtree(fresh, ignore_errors=True)
        raise _unable(place, "the database cannot be initialised")
    fresh.rename(place.pgdata)


def _require_named_account(place: Place) -> None:
    uid = os.geteuid() if place.account is None else place.account.uid
    try:
        pwd.getpwuid(uid)
    except KeyError:
        text = f"Postgres cannot be initialised by user {uid}, who has no line in /etc/passwd"
        raise SetupError(text + "; add one, run as another user, or set DATABASE_URL") from None


def _stop(place: Place) -> None:
    for mode in ("fast", "immediate"):
        if _succeeds(place, "pg_ctl", "stop", "-w", "-t", str(_STOP_SECONDS), "-m", mode):
            return
    log.error("the embedded Postgres in %s does not stop", place.home)


def _socket_dir(place: Place) -> Path:
    if _fits(place.home):
        return place.home
    directory = Path(tempfile.mkdtemp(prefix="reward-postgres-"))
    place.own(directory)
    if _fits(directory):
        return directory
    directory.rmdir()
    text = f"the paths {place.home} and {directory.parent} are too long for a Unix socket"
    raise SetupError(text + "; choose a shorter data directory or set TMPDIR=/tmp")


def _fits(directory: Path) -> bool:
    path = str(directory)
    is_short = len((path + _SOCKET_NAME).encode()) <= _SOCKET_PATH_BYTES
    return is_short and _PLAIN_PATH.fullmatch(path) is not None


def _drop_socket_dir(place: Place, socket_dir: Path | None) -> None:
    if socket_dir is not None and socket_dir != place.home:
        with suppress(OSError):
            socket_dir.rmdir()


def _succeeds(place: Place, program: str, *arguments: str, pgdata: Path | None = None) -> bool:
    environment = {"PGDATA": str(pgdata or place.pgdata), "LC_ALL": "C", "PATH": "/usr/bin:/bin"}
    account = {} if place.account is None else place.account.as_popen()
    # A pipe would stay open in the daemon that pg_ctl leaves behind.
    with (place.home / "setup.log").open("ab") as output:
        try:
            done = subprocess.run(
                [place.programs / program, *arguments],
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=place.home,
                env=environment,
                timeout=2 * _STOP_SECONDS,
                **account,
            )
        except (OSError, subprocess.SubprocessError) as error:
            output.write(f"{program}: {error}\n".encode())
            return False
    return done.returncode == 0


def _put_logs_aside(place: Place) -> None:
    for name in _LOGS:
        with suppress(FileNotFoundError):
            (place.home / name).replace(place.home / f"{name}.old")


def _log_tail(place: Place) -> str:
    tails = []
    for name in _LOGS:
        with suppress(OSError):
            tails.append((place.home / name).read_text(errors="replace")[-1000:])
    return "\n".join(tails)


def _unable(place: Place, what: str) -> SetupError:
    log.error("%s; its log ends with:\n%s", what, _log_tail(place))
    text = f"{what} in {place.home}; read {place.home / 'log'} and {place.home / 'setup.log'},"
    return SetupError(text + " free disk space and memory, or set DATABASE_URL")
