"""The whole box as the command line of a `bwrap`, and what it is built from.

`bwrap` sets a box up in the order of its arguments, and the order matters: a mount hides what was
mounted before at its path or below, and a folder can only be made while its parent is writable. So
the tree comes first, `--remount-ro /` last.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from reward_server.errors import SetupError
from reward_server.sandbox.payload import ENVIRONMENT, INSIDE, TEMPORARY, WORK

if TYPE_CHECKING:
    from collections.abc import Mapping

DEVICE_FOLDER = "devices"
DEVICE_NUMBERS = {
    "null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9),
    "tty": (5, 0),
}  # fmt: skip
SCRIPTS = Path(__file__).parents[1] / "inside"
_SYSTEM_FOLDERS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC = ("ld.so.cache", "alternatives", "localtime", "mime.types")
_LAUNCHER, _ZYGOTE_SERVER = "launcher.pyc", "zygote_server.pyc"
_STAGE = "/stage"
_ZYGOTE_DISK_BYTES = 16 << 20
# `--unshare-all` skips a user namespace where it cannot be had; `--unshare-user` insists on it.
# `--die-with-parent` kills the box with its supervisor; `--new-session` leaves it no terminal.
_NAMESPACES = (
    *("--unshare-all", "--unshare-user", "--die-with-parent", "--new-session"),
    *("--hostname", "box"),
)


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The Python that programs run under: a virtual environment and what it was made from."""

    environment: Path
    base: Path

    @property
    def python(self) -> Path:
        """Return the interpreter inside the environment."""
        return self.environment / "bin" / "python"


def find_interpreter(environment: Path) -> Interpreter:
    """Return the interpreter of a virtual environment.

    Raises:
        SetupError: when there is none; the text says how to make it.
    """
    config = environment / "pyvenv.cfg"
    if not config.exists():
        message = (
            f"no virtual environment for programs at {environment}: run `make serve`, or "
            "`python3 -m venv DIR && DIR/bin/pip install -r sandbox_images/cpu/requirements.txt` "
            "and set REWARD_SERVER_SANDBOX__ENVIRONMENT to DIR"
        )
        raise SetupError(message)
    fields = dict(line.split(" = ", 1) for line in config.read_text().splitlines() if " = " in line)
    base = Path(fields["home"]).parent
    return Interpreter(environment.absolute(), base)


def compile_launcher(interpreter: Interpreter, folder: Path) -> None:
    """Compile the box scripts with the programs' own Python, so that no program pays for it.

    Raises:
        SetupError: when that Python does not run.
    """
    sources = sorted(SCRIPTS.glob("*.py"))
    steps = (
        "import os, py_compile, sys\n"
        "folder, *sources = sys.argv[1:]\n"
        "for source in sources:\n"
        "    py_compile.compile(source, os.path.join(folder, os.path.basename(source) + 'c'))\n"
    )
    line = [str(part) for part in (interpreter.python, "-I", "-c", steps, folder, *sources)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode != 0 or not (folder / _LAUNCHER).exists():
        message = f"the programs' Python at {interpreter.python} does not work: {done.stderr}"
        raise SetupError(message)


def fill_etc(folder: Path) -> None:
    """Copy the few files of the system's configuration that a program needs."""
    for name in _ETC:
        source, target = Path("/etc") / name, folder / name
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True)
        elif source.exists():
            shutil.copy(source, target)


@dataclass(frozen=True, slots=True)
class Sources:
    """Where `bwrap` finds, on its side, what it shows in the box.

    With `nothing`, an empty folder, every folder is shown through an overlay, whose inodes are the
    box's own: two boxes with the same inode could both lock and watch it, which is a channel
    between them. `devices` are the slot's own for the same reason.
    """

    bubblewrap: str
    environment: str
    base: str
    inside: str
    etc: str
    nothing: str | None = None
    devices: str | None = None

    def show(self, folder: str, target: str) -> tuple[str, ...]:
        """Return how a box is shown a folder of the host, read-only."""
        if self.nothing is None:
            return "--ro-bind", folder, target
        lower = ("--overlay-src", self.nothing, "--overlay-src", folder)
        return *lower, "--ro-overlay", target, "--remount-ro", target  # adds nodev


def build_command(
    sources: Sources, interpreter: Interpreter, task_id: str, public: str | None, disk_bytes: int
) -> list[str]:
    """Return the command line that builds one box and starts the launcher in it."""
    data = () if public is None else sources.show(public, f"/workdir/{task_id}/prepared/public")
    return [
        sources.bubblewrap,
        *_NAMESPACES,
        *("--disable-userns", "--cap-drop", "ALL", "--uid", "1000", "--gid", "1000"),
        *("--seccomp", "4"),
        *_tree(sources, interpreter, disk_bytes),
        *("--remount-ro", "/proc"),  # an owner may write to some of its files
        *data,
        *("--remount-ro", "/", "--chdir", WORK),
        *("--", f"{ENVIRONMENT}/bin/python", f"{INSIDE}/{_LAUNCHER}"),
    ]


def build_zygote_command(
    sources: Sources, interpreter: Interpreter, publics: Mapping[str, str]
) -> list[str]:
    """Return the command line of the box that a zygote server builds the programs' boxes from.

    The server is root of that box and of nothing else, so that it can mount and clone there.
    """
    staged = (sources.show(path, f"{_STAGE}/{name}") for name, path in publics.items())
    return [
        sources.bubblewrap,
        *_NAMESPACES,
        *("--cap-add", "ALL", "--uid", "0", "--gid", "0"),
        *_tree(sources, interpreter, _ZYGOTE_DISK_BYTES),
        *("--dir", _STAGE, "--dir", "/workdir"),
        *(part for arguments in staged for part in arguments),
        *("--remount-ro", "/", "--chdir", "/"),
        *("--", f"{ENVIRONMENT}/bin/python", f"{INSIDE}/{_ZYGOTE_SERVER}"),
    ]


def _tree(sources: Sources, interpreter: Interpreter, disk_bytes: int) -> list[str]:
    """Return what every box sees: the system, the packages, empty folders of its own.

    The base interpreter and the environment follow the empty folders: either may lie below one.
    """
    base = interpreter.base
    own_base = () if base == Path("/usr") else sources.show(sources.base, str(base))
    return [
        *(part for path in _whole("/usr") for part in sources.show(path, path)),
        *_system_folders(sources),
        *sources.show(sources.etc, "/etc"),
        *("--proc", "/proc", "--dev", "/dev", *_own_devices(sources)),
        *("--size", str(disk_bytes), "--perms", "1777", "--tmpfs", "/dev/shm"),  # noqa: S108
        *("--remount-ro", "/dev"),
        *("--size", str(disk_bytes), "--perms", "0700", "--tmpfs", WORK),
        *("--size", str(disk_bytes), "--perms", "1777", "--tmpfs", TEMPORARY),
        *own_base,
        *sources.show(sources.environment, ENVIRONMENT),
        *sources.show(sources.inside, INSIDE),
    ]


def _own_devices(sources: Sources) -> list[str]:
    if sources.devices is None:
        return []
    binds = (
        ("--dev-bind-try", f"{sources.devices}/{name}", f"/dev/{name}") for name in DEVICE_NUMBERS
    )
    return [part for bind in binds for part in bind]


@cache
def _whole(folder: str) -> tuple[str, ...]:
    """Return a folder and the mounts below it, which an overlay does not show."""
    mounts = (line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines())
    return folder, *sorted(mount for mount in mounts if mount.startswith(f"{folder}/"))


@cache
def _system_folders(sources: Sources) -> tuple[str, ...]:
    arguments: list[str] = []
    for name in _SYSTEM_FOLDERS:
        path = Path(name)
        if path.is_symlink():
            arguments += ["--symlink", str(path.readlink()), name]
        elif path.is_dir():
            arguments += sources.show(name, name)
    return tuple(arguments)
