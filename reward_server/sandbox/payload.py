"""What the server tells the first process of a box, whichever kind of box it is."""

from __future__ import annotations

import marshal
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reward_server.model import AdHocProgram, Instrumentation, Instrumented, Program

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from reward_server.model import Limits, Milestone

WORK, TEMPORARY, SHARED = "/box", "/tmp", "/dev/shm"  # noqa: S108 - paths inside the box
_ARTIFACT = "submission.csv"
_FILE, _ERRAND_FILE = "solution.py", "program.py"
_FORMAT = 2  # read by whatever Python the box has


@dataclass(frozen=True, slots=True)
class RunInstructions:
    """One program as a box gets it: with the public data of a task, or with an errand's files."""

    instrumented: Instrumented
    limits: Limits
    task_id: str = ""
    public: Path | None = None
    errand: AdHocProgram | None = None

    @classmethod
    def of(cls, errand: AdHocProgram, limits: Limits) -> RunInstructions:
        """Return the order for an errand, which reports no milestones."""
        instrumented = Instrumented(Program(errand.code), (), Instrumentation("off"))
        return cls(instrumented, limits, errand=errand)

    @property
    def fetch(self) -> tuple[str, ...]:
        """Return the names of the files that are asked for beside the submission."""
        return () if self.errand is None else self.errand.fetch

    @property
    def wanted(self) -> dict[str, object]:
        """Return what is taken from the work directory in the end."""
        return {
            "artifact": _ARTIFACT if self.errand is None else None,
            "artifact_bytes": self.limits.artifact_bytes,
            "fetch": list(self.fetch),
        }


def pack(order: RunInstructions, tokens: Mapping[Milestone, bytes], *, counted: bool) -> bytes:
    """Return the payload of one program; `counted` says that the box is limited as a whole."""
    instrumented, limits = order.instrumented, order.limits
    errand = order.errand or AdHocProgram("")
    places: dict[tuple[int, int], list[int]] = {}
    for marker in instrumented.markers:
        places.setdefault((marker.line, marker.column), []).append(int(marker.milestone))
    rlimits = {"CORE": 0, "NOFILE": limits.open_files}
    if not counted:
        rlimits |= {"DATA": limits.memory_bytes, "NPROC": limits.processes}
    content = {
        "code": instrumented.program.code,
        "file": f"{WORK}/{_FILE if order.errand is None else _free_name(errand)}",
        "folders": [WORK, TEMPORARY, SHARED],
        "limits": rlimits,
        "places": places,
        "name": f"_{secrets.token_hex(16)}",
        "tokens": {int(milestone): token for milestone, token in tokens.items()},
        "stdin": errand.stdin,
        "inputs": dict(errand.files),
    }
    return marshal.dumps(content, _FORMAT)


def _free_name(errand: AdHocProgram) -> str:
    """Return a name for the program's file that none of its own files or folders has."""
    taken = {name.partition("/")[0] for name in errand.files}
    name = _ERRAND_FILE
    while name in taken:
        name = f"_{name}"
    return name
