"""Whether the engine's runc is a version that programs are known to break out of.

Distributions patch old versions without a new number: the revisions of Debian and Ubuntu that
carry the first fix are listed. Other runtimes are not checked.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Any

from reward_server.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Mapping

_RUNTIMES = ("runc", "io.containerd.runc.v2", "nvidia")  # the last is runc with devices
_FIRST_FIX = (1, 1, 12, 0)
_LATER_FIXES = ((1, 2, 8, 0), (1, 3, 3, 0), (1, 4, 0, 3))  # the last part: which candidate
_RELEASE = 1000  # comes after all candidates
_PATCHED = (
    ("1.0.0~rc93+ds1-5+deb11u", 3),
    ("1.1.5+ds1-1+deb12u", 1),
    ("1.1.4-0ubuntu1~18.04.2+esm", 1),
    ("1.1.7-0ubuntu1~20.04.", 2),
    ("1.1.7-0ubuntu1~22.04.", 2),
    ("1.1.7-0ubuntu2.", 2),
)
_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(?:[-~]rc\.?(\d+))?")
_REMEDY = "upgrade runc (1.2.8, 1.3.3, 1.4.0 or newer), or set REWARD_SERVER_SANDBOX__RUNTIME=runsc"


class RuncRating(Enum):
    """What is known about a version of runc."""

    FIXED = "every fix we know of"
    OLD = "without the fixes of November 2025"
    VULNERABLE = "without the fix of January 2024"


def rate(version: str, commit: str) -> RuncRating:
    """Return what is known about a runc by the engine's description of it."""
    found = _VERSION.match(version)
    if found is None:
        return RuncRating.OLD
    number = _version_tuple(found)
    if number < _FIRST_FIX:
        is_patched = any(_is_patched(text) for text in (version, commit))
        return RuncRating.OLD if is_patched else RuncRating.VULNERABLE
    fixes = [fix for fix in _LATER_FIXES if fix[:2] <= number[:2]]
    return RuncRating.FIXED if fixes and number >= fixes[-1] else RuncRating.OLD


def _version_tuple(found: re.Match[str]) -> tuple[int, ...]:
    return tuple(int(part or _RELEASE) for part in found.groups())


def _is_patched(text: str) -> bool:
    for start, least in _PATCHED:
        revision = re.match(r"\d+", text.removeprefix(start))
        if text.startswith(start) and revision and int(revision.group()) >= least:
            return True
    return False


def check_version(description: Mapping[str, Any], runtime: str) -> str | None:
    """Return a warning about the runc that an engine describes, if there is one.

    Raises:
        SetupError: when programs are known to break out of it; the text names the remedy.
    """
    parts = [part for part in description.get("Components") or () if part["Name"] == "runc"]
    if runtime not in _RUNTIMES or not parts:
        return None
    version = parts[0]["Version"]
    match rate(version, parts[0].get("Details", {}).get("GitCommit", "")):
        case RuncRating.VULNERABLE:
            message = f"programs can leave containers of runc {version} (CVE-2024-21626): {_REMEDY}"
            raise SetupError(message)
        case RuncRating.OLD:
            faults = "CVE-2025-31133, CVE-2025-52565 and CVE-2025-52881"
            return f"runc {version} may have no fix of {faults}: {_REMEDY}"
        case RuncRating.FIXED:
            return None
