"""What the server tells the first process of a box, whichever kind of box it is."""

from __future__ import annotations

import marshal
import secrets
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reward_server.model import Instrumented, Limits, Milestone

WORK, TEMPORARY, SHARED = "/box", "/tmp", "/dev/shm"  # noqa: S108 - paths inside the box
ARTIFACT = "submission.csv"
_FILE = "solution.py"
_FORMAT = 2  # read by whatever Python the box has


def pack(
    instrumented: Instrumented, tokens: Mapping[Milestone, bytes], limits: Limits, *, counted: bool
) -> bytes:
    """Return the payload of one program; `counted` says that the box is limited as a whole."""
    places: dict[tuple[int, int], list[int]] = {}
    for marker in instrumented.markers:
        places.setdefault((marker.line, marker.column), []).append(int(marker.milestone))
    rlimits = {"CORE": 0, "NOFILE": limits.open_files}
    if not counted:
        rlimits |= {"DATA": limits.memory_bytes, "NPROC": limits.processes}
    content = {
        "code": instrumented.program.code,
        "file": f"{WORK}/{_FILE}",
        "folders": [WORK, TEMPORARY, SHARED],
        "limits": rlimits,
        "places": places,
        "name": f"_{secrets.token_hex(16)}",
        "tokens": {int(milestone): token for milestone, token in tokens.items()},
    }
    return marshal.dumps(content, _FORMAT)
