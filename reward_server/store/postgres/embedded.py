"""The embedded Postgres: the real server, from a wheel, in the data directory.

Several processes may use one data directory: the first one starts Postgres, the others join it, and
the last one to leave stops it. Each user holds a shared file lock, which the kernel releases when
the process dies. A process joins a Postgres that survived a killed server. If Postgres dies in use,
the first process that notices starts it again.
"""

from __future__ import annotations

import fcntl
import logging
import threading
import time
from contextlib import ExitStack, contextmanager
from typing import IO, TYPE_CHECKING

from sqlalchemy import URL

from reward_server.errors import SetupError
from reward_server.store.postgres import process
from reward_server.store.postgres.location import find_location

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from reward_server.store.postgres.location import PostgresLocation

log = logging.getLogger(__name__)

_CHECK_SECONDS = 1.0


@contextmanager
def embedded_postgres(data_dir: Path) -> Iterator[str]:
    """Run Postgres in `<data_dir>/postgres` for as long as the block lasts; yield its URL.

    Raises:
        SetupError: when it cannot be started; the text names the remedy.
    """
    location = find_location(data_dir)
    with ExitStack() as stack:
        users = stack.enter_context(_open_lock(location, "users.lock"))
        with _starting(location):
            fcntl.flock(users, fcntl.LOCK_SH)
            socket_dir = _join_or_start(location, users)
        stack.callback(_leave, location, users)
        stack.enter_context(_kept_running(location, socket_dir))
        yield _url(socket_dir)


def _url(socket_dir: Path) -> str:
    url = URL.create(
        "postgresql+asyncpg",
        username="postgres",
        database="postgres",
        query={"host": str(socket_dir)},
    )
    return url.render_as_string(hide_password=False)


def _open_lock(location: PostgresLocation, name: str) -> IO[bytes]:
    path = location.home / name
    try:
        return path.open("ab")
    except OSError as error:
        text = f"cannot open {path}: {error}; run the server as the owner of the data directory"
        raise SetupError(text) from error


@contextmanager
def _starting(location: PostgresLocation) -> Iterator[None]:
    deadline = time.monotonic() + process.START_SECONDS
    with _open_lock(location, "start.lock") as lock:
        while not _locked(lock):
            if time.monotonic() > deadline:
                text = f"another process has been starting Postgres in {location.home} for too long"
                raise SetupError(text + "; stop it and try again")
            time.sleep(process.POLL_SECONDS)
        yield


def _locked(lock: IO[bytes]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _join_or_start(location: PostgresLocation, users: IO[bytes]) -> Path:
    if process.find_postgres(location) is None:
        is_alone = _locked(users)
        fcntl.flock(users, fcntl.LOCK_SH)
        if not is_alone and not process.was_started_here(location):
            text = f"a process that this one cannot see uses the database in {location.home}"
            raise SetupError(text + "; stop it, or give this server another data directory")
        process.start(location)
    return process.wait_until_ready(location)


def _leave(location: PostgresLocation, users: IO[bytes]) -> None:
    with _starting(location):
        is_last = _locked(users)
        running = process.find_postgres(location)
        if is_last and running is not None:
            process.stop(location)
            process.drop_socket_dir(location, running.socket_dir)
        fcntl.flock(users, fcntl.LOCK_UN)


@contextmanager
def _kept_running(location: PostgresLocation, socket_dir: Path) -> Iterator[None]:
    """Start Postgres again whenever it dies, for as long as the block lasts."""
    leaving = threading.Event()
    watch = threading.Thread(
        target=_watch, args=(location, socket_dir, leaving), name="postgres-watch", daemon=True
    )
    watch.start()
    try:
        yield
    finally:
        leaving.set()
        watch.join()


def _watch(location: PostgresLocation, socket_dir: Path, leaving: threading.Event) -> None:
    while not leaving.wait(_CHECK_SECONDS):
        try:
            if process.find_postgres(location) is None:
                _restart(location, socket_dir)
        except (SetupError, OSError) as error:
            log.error("%s; trying again", error)  # noqa: TRY400 - no traceback


def _restart(location: PostgresLocation, socket_dir: Path) -> None:
    with _starting(location):
        if process.find_postgres(location) is not None:
            return
        if not process.was_started_here(location):
            text = f"a process that this one cannot see has started Postgres in {location.home}"
            raise SetupError(text)
        log.error("the embedded Postgres in %s has died; restarting it", location.home)
        process.start(location, socket_dir)
        process.wait_until_ready(location)
