"""What every kind of box is given: its folders, its environment, and the program's payload."""

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
INSIDE, ENVIRONMENT = "/inside", "/environment"
_ARTIFACT = "submission.csv"
_JOB_FILE, _AD_HOC_FILE = "solution.py", "program.py"
_FORMAT = 2  # of marshal: any Python that a box may have reads it


@dataclass(frozen=True, slots=True)
class RunInstructions:
    """A program to run: a job's with the public data of its task, or an ad hoc one with files."""

    instrumented: Instrumented
    limits: Limits
    task_id: str = ""
    public: Path | None = None
    ad_hoc: AdHocProgram | None = None

    @classmethod
    def for_ad_hoc(cls, program: AdHocProgram, limits: Limits) -> RunInstructions:
        """Return the instructions for an ad hoc program, which reports no milestones."""
        instrumented = Instrumented(Program(program.code), (), Instrumentation("off"))
        return cls(instrumented, limits, ad_hoc=program)

    @property
    def fetch(self) -> tuple[str, ...]:
        """Return the names of the files to collect beside the submission."""
        return () if self.ad_hoc is None else self.ad_hoc.fetch

    @property
    def collection(self) -> dict[str, object]:
        """Return what the supervisor collects from the work directory in the end."""
        return {
            "artifact": _ARTIFACT if self.ad_hoc is None else None,
            "artifact_bytes": self.limits.artifact_bytes,
            "fetch": list(self.fetch),
        }


def pack(
    instructions: RunInstructions, tokens: Mapping[Milestone, bytes], *, has_cgroup: bool
) -> bytes:
    """Return the payload of one program.

    Without a cgroup, which limits the box as a whole, each process gets the limits of the kernel.
    """
    instrumented, limits = instructions.instrumented, instructions.limits
    ad_hoc = instructions.ad_hoc or AdHocProgram("")
    positions: dict[tuple[int, int], list[int]] = {}
    for marker in instrumented.markers:
        positions.setdefault((marker.line, marker.column), []).append(int(marker.milestone))
    rlimits = {"CORE": 0, "NOFILE": limits.open_files}
    if not has_cgroup:
        rlimits |= {"DATA": limits.memory_bytes, "NPROC": limits.processes}
    content = {
        "code": instrumented.program.code,
        "file": f"{WORK}/{_JOB_FILE if instructions.ad_hoc is None else _free_name(ad_hoc)}",
        "folders": [WORK, TEMPORARY, SHARED],
        "limits": rlimits,
        "positions": positions,
        "name": f"_{secrets.token_hex(16)}",
        "tokens": {int(milestone): token for milestone, token in tokens.items()},
        "stdin": ad_hoc.stdin,
        "inputs": dict(ad_hoc.files),
    }
    return marshal.dumps(content, _FORMAT)


def _free_name(program: AdHocProgram) -> str:
    """Return a name for the program's file that none of its own files or folders has."""
    taken = {name.partition("/")[0] for name in program.files}
    name = _AD_HOC_FILE
    while name in taken:
        name = f"_{name}"
    return name


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
