"""Which versions of runc are refused, which are only mentioned (ESC-02)."""

from __future__ import annotations

from typing import Any

import pytest

from reward_server.errors import SetupError
from reward_server.sandbox.docker.runc import RuncRating, look, rate


def told(version: str, commit: str = "") -> dict[str, Any]:
    """Return what an engine says of itself."""
    return {
        "Components": [
            {"Name": "Engine", "Version": "20.10.24"},
            {"Name": "runc", "Version": version, "Details": {"GitCommit": commit}},
        ]
    }


@pytest.mark.parametrize(
    ("version", "commit", "standing"),
    [
        ("1.1.11", "v1.1.11-0-g4bccb38c", RuncRating.OPEN),
        ("1.0.0-rc93", "", RuncRating.OPEN),
        ("1.1.5+ds1", "1.1.5+ds1-1", RuncRating.OPEN),
        ("1.1.5+ds1", "1.1.5+ds1-1+deb12u1", RuncRating.AGED),
        ("1.1.5+ds1", "1.1.5+ds1-1+deb12u10", RuncRating.AGED),
        ("1.0.0~rc93+ds1", "1.0.0~rc93+ds1-5+deb11u2", RuncRating.OPEN),
        ("1.0.0~rc93+ds1", "1.0.0~rc93+ds1-5+deb11u3", RuncRating.AGED),
        ("1.1.7-0ubuntu1~22.04.1", "", RuncRating.OPEN),
        ("1.1.7-0ubuntu1~22.04.2", "", RuncRating.AGED),
        ("1.1.7-0ubuntu1~20.04.2", "", RuncRating.AGED),
        ("1.1.7-0ubuntu2.1", "", RuncRating.OPEN),
        ("1.1.7-0ubuntu2.2", "", RuncRating.AGED),
        ("1.1.7", "1.1.7-0ubuntu1~22.04.", RuncRating.OPEN),
        ("1.1.12", "v1.1.12-0-g51d5e946", RuncRating.AGED),
        ("1.1.15+ds1", "1.1.15+ds1-2", RuncRating.AGED),
        ("1.2.0-rc.1", "", RuncRating.AGED),
        ("1.2.7", "", RuncRating.AGED),
        ("1.2.8", "", RuncRating.SOUND),
        ("1.3.0", "", RuncRating.AGED),
        ("1.3.3-0ubuntu1~24.04.2", "", RuncRating.SOUND),
        ("1.3.10", "", RuncRating.SOUND),
        ("1.4.0-rc.2", "", RuncRating.AGED),
        ("1.4.0-rc.3", "", RuncRating.SOUND),
        ("1.4.0", "", RuncRating.SOUND),
        ("1.5.1-0ubuntu2", "", RuncRating.SOUND),
        ("2.0.0", "", RuncRating.SOUND),
        ("N/A", "", RuncRating.AGED),
    ],
)
def test_a_version_is_known_by_its_number_or_its_patch(
    version: str, commit: str, standing: RuncRating
) -> None:
    assert rate(version, commit) is standing


@pytest.mark.parametrize("runtime", ["runc", "nvidia", "io.containerd.runc.v2"])
def test_a_runc_that_programs_can_leave_is_refused(runtime: str) -> None:
    with pytest.raises(SetupError, match=r"1\.1\.11.*CVE-2024-21626.*upgrade.*runsc"):
        look(told("1.1.11"), runtime)


def test_a_runc_without_later_fixes_is_mentioned() -> None:
    text = look(told("1.1.5+ds1", "1.1.5+ds1-1+deb12u1"), "runc")
    assert text is not None
    assert "CVE-2025-31133" in text
    assert "runsc" in text
    assert look(told("1.3.3"), "runc") is None


@pytest.mark.parametrize("runtime", ["runsc", "crun", "kata"])
def test_other_runtimes_are_not_compared(runtime: str) -> None:
    assert look(told("1.1.11"), runtime) is None


def test_an_engine_that_tells_nothing_is_not_compared() -> None:
    assert look({"Components": [{"Name": "OCI Runtime (crun)", "Version": "1.8"}]}, "runc") is None
    assert look({"Version": "4.3.1"}, "runc") is None
