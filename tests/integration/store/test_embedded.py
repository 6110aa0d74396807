from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import make_url, text

from reward_server.errors import SetupError
from reward_server.store.engine import make_engine
from reward_server.store.postgres import location
from reward_server.store.postgres.embedded import embedded_postgres
from tests.conftest import is_alive, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root hands Postgres to others")

_KILLED_SERVER = """
import os, sys
from pathlib import Path
from reward_server.store.postgres.embedded import embedded_postgres
with embedded_postgres(Path(sys.argv[1])):
    os.kill(os.getpid(), 9)
"""

_CLEAN_SERVER = """
import sys
from pathlib import Path
from reward_server.store.postgres.embedded import embedded_postgres
with embedded_postgres(Path(sys.argv[1])) as url:
    print(url)
"""


@pytest.fixture
def data_dir(open_dir: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=open_dir) as directory:
        Path(directory).chmod(0o755)
        yield Path(directory) / "data"


def ask(url: str, *questions: str) -> list[object]:
    return asyncio.run(_ask(url, *questions))


async def _ask(url: str, *questions: str) -> list[object]:
    engine = make_engine(url, pool_size=1)
    try:
        async with engine.connect() as connection:
            results = [await connection.execute(text(question)) for question in questions]
            return [result.scalar() if result.returns_rows else None for result in results]
    finally:
        await engine.dispose()


def pid_file(data_dir: Path) -> Path:
    return data_dir / "postgres" / "data" / "postmaster.pid"


def postmaster_pid(data_dir: Path) -> int:
    return int(pid_file(data_dir).read_text().splitlines()[0])


def test_the_embedded_postgres_is_durable_and_opens_no_port(database_url: str) -> None:
    names = ("fsync", "synchronous_commit", "full_page_writes", "listen_addresses")
    answers = ask(database_url, *(f"SHOW {name}" for name in names))
    assert answers == ["on", "on", "on", ""]


def test_other_accounts_cannot_read_the_files_of_postgres(data_dir: Path) -> None:
    with embedded_postgres(data_dir):
        assert (data_dir / "postgres").stat().st_mode & 0o077 == 0


def test_it_keeps_its_data_when_the_postmaster_is_killed(data_dir: Path) -> None:
    with embedded_postgres(data_dir) as url:
        ask(url, "CREATE TABLE kept AS SELECT 42 AS value")
        os.kill(postmaster_pid(data_dir), signal.SIGKILL)
    with embedded_postgres(data_dir) as url:
        assert ask(url, "SELECT value FROM kept") == [42]


def test_a_postgres_that_survived_its_server_is_joined_and_stopped(
    data_dir: Path,
) -> None:
    command = [sys.executable, "-c", _KILLED_SERVER, str(data_dir)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, check=False, env=environment, timeout=60)
    assert done.returncode == -signal.SIGKILL
    survivor = postmaster_pid(data_dir)
    with embedded_postgres(data_dir) as url:
        assert postmaster_pid(data_dir) == survivor
        assert ask(url, "SELECT 1") == [1]
    assert not pid_file(data_dir).exists()


def test_the_last_process_to_leave_stops_postgres(data_dir: Path) -> None:
    with embedded_postgres(data_dir) as url:
        with embedded_postgres(data_dir) as joined:
            assert joined == url
        assert ask(url, "SELECT 1") == [1]
    assert not pid_file(data_dir).exists()


def test_a_stale_pid_file_with_a_recycled_pid_is_ignored(data_dir: Path) -> None:
    socket_lock = data_dir / "postgres" / ".s.PGSQL.5432.lock"
    with embedded_postgres(data_dir):
        stale = {path: path.read_text() for path in (pid_file(data_dir), socket_lock)}
    owner = pid_file(data_dir).parent.stat().st_uid
    with subprocess.Popen(["/bin/sleep", "600"], user=owner) as stranger:
        try:
            for path, content in stale.items():
                path.write_text("\n".join([str(stranger.pid), *content.splitlines()[1:]]))
            with embedded_postgres(data_dir) as url:
                assert ask(url, "SELECT 1") == [1]
        finally:
            stranger.kill()


@pytest.mark.parametrize("name", ["x" * 120, "a b,c'$(d)\"%é"])
def test_postgres_starts_in_a_long_or_unusual_path(data_dir: Path, name: str) -> None:
    with embedded_postgres(data_dir / name) as url:
        assert ask(url, "SELECT 1") == [1]
        socket_dir = Path(str(make_url(url).query["host"]))
        assert socket_dir.exists()
    assert not socket_dir.exists()


def test_a_broken_database_is_refused_with_the_remedy(data_dir: Path) -> None:
    with embedded_postgres(data_dir):
        pass
    (data_dir / "postgres" / "data" / "PG_VERSION").write_text("9\n")
    with pytest.raises(SetupError, match="DATABASE_URL"), embedded_postgres(data_dir):
        pass


def test_a_data_directory_that_is_a_file_is_refused_with_the_remedy(data_dir: Path) -> None:
    data_dir.write_text("")
    with pytest.raises(SetupError, match="DATABASE_URL"), embedded_postgres(data_dir):
        pass


@needs_root
def test_below_a_closed_directory_the_data_moves_elsewhere(
    data_dir: Path, open_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(location, "STATE_DIR", open_dir / "state")
    data_dir.mkdir(mode=0o700)
    inner = data_dir / "inner"
    for _ in range(2):
        with embedded_postgres(inner) as url:
            assert ask(url, "CREATE TABLE IF NOT EXISTS kept ()", "SELECT 1") == [None, 1]
            link = inner / "postgres"
            assert link.resolve().is_relative_to(open_dir / "state")
    assert data_dir.stat().st_mode & 0o777 == 0o700
    assert len(list((open_dir / "state").iterdir())) == 1


@needs_root
def test_a_missing_database_is_not_replaced_by_an_empty_one(data_dir: Path) -> None:
    data_dir.mkdir()
    (data_dir / "postgres").symlink_to(data_dir / "gone")
    with pytest.raises(SetupError, match="is gone"), embedded_postgres(data_dir):
        pass


@needs_root
def test_binaries_that_the_account_cannot_reach_are_copied(
    data_dir: Path, open_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(location, "STATE_DIR", open_dir / "copies")
    installed = location._installed()
    closed = data_dir.parent / "closed"
    closed.mkdir(mode=0o700)
    (closed / "site").symlink_to(installed.parent.parent)
    moved = closed / "site" / installed.parent.name / installed.name
    monkeypatch.setattr(location, "_installed", lambda: moved)
    with embedded_postgres(data_dir) as url:
        assert ask(url, "SELECT 1") == [1]
    assert (open_dir / "copies").is_dir()


_DOCKERS_CAPABILITIES = (
    "chown,dac_override,fowner,fsetid,kill,setgid,setuid,setpcap,net_bind_service,net_raw,"
    "sys_chroot,mknod,audit_write,setfcap"
)


@needs_root
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv")
def test_root_in_a_docker_container_can_run_postgres(data_dir: Path) -> None:
    kept = "-all,+" + _DOCKERS_CAPABILITIES.replace(",", ",+")
    command = ["setpriv", "--bounding-set", kept, "--inh-caps", "-all", sys.executable, "-c"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    for script, code in ((_KILLED_SERVER, -signal.SIGKILL), (_CLEAN_SERVER, 0)):
        done = subprocess.run(
            [*command, script, data_dir], check=False, env=environment, timeout=60
        )
        assert done.returncode == code
    assert not pid_file(data_dir).exists()


_ORDINARY = 65534
_SYSTEM_PYTHON = Path(f"/usr/bin/python3.{sys.version_info.minor}")


@needs_root
@pytest.mark.skipif(not _SYSTEM_PYTHON.exists(), reason="needs a Python that anyone can run")
def test_an_ordinary_user_runs_postgres_as_himself(data_dir: Path) -> None:
    data_dir.mkdir()
    os.chown(data_dir, _ORDINARY, _ORDINARY)
    done = subprocess.run(
        [_SYSTEM_PYTHON, "-B", "-c", _CLEAN_SERVER, data_dir],
        check=False,
        user=_ORDINARY,
        group=_ORDINARY,
        extra_groups=[],
        cwd="/",
        env={"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.startswith("postgresql+asyncpg://"), done.stderr
    assert (data_dir / "postgres" / "data").stat().st_uid == _ORDINARY
    assert not pid_file(data_dir).exists()
    with embedded_postgres(data_dir) as url:
        assert ask(url, "SELECT 1") == [1]
    assert (data_dir / "postgres" / "data").stat().st_uid == _ORDINARY


def test_a_killed_postgres_is_restarted_in_its_location(data_dir: Path) -> None:
    with embedded_postgres(data_dir) as url, embedded_postgres(data_dir):
        ask(url, "CREATE TABLE kept AS SELECT 42 AS value")
        for _ in range(2):
            victim = postmaster_pid(data_dir)
            os.kill(victim, signal.SIGKILL)
            wait_until(partial(has_another, data_dir, victim))
            assert ask(url, "SELECT value FROM kept") == [42]
    assert not pid_file(data_dir).exists()


def test_postgres_is_restarted_when_the_disk_has_space_again(data_dir: Path) -> None:
    settings = data_dir / "postgres" / "data" / "postgresql.conf"
    with embedded_postgres(data_dir) as url:
        victim, content = postmaster_pid(data_dir), settings.read_text()
        settings.write_text("no such setting")
        os.kill(victim, signal.SIGKILL)
        log = data_dir / "postgres" / "log"
        wait_until(lambda: log.exists() and "syntax error" in log.read_text())
        settings.write_text(content)
        wait_until(lambda: has_another(data_dir, victim))
        assert ask(url, "SELECT 1") == [1]


def test_a_postgres_of_another_pid_namespace_is_not_touched(data_dir: Path) -> None:
    origin = data_dir / "postgres" / "started-in"
    with embedded_postgres(data_dir):
        here = origin.read_text()
        origin.write_text("another machine")
        victim = postmaster_pid(data_dir)
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: not is_alive(victim))
        with pytest.raises(SetupError, match="cannot see"), embedded_postgres(data_dir):
            pass
        origin.write_text(here)
        with embedded_postgres(data_dir) as url:
            assert ask(url, "SELECT 1") == [1]


def has_another(data_dir: Path, before: int) -> bool:
    lines = pid_file(data_dir).read_text().splitlines() if pid_file(data_dir).exists() else []
    return len(lines) > 7 and int(lines[0]) != before and lines[7].strip() == "ready"
