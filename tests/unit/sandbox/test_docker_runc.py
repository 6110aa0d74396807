"""Which versions of runc are refused, which are only mentioned (ESC-02)."""

from __future__ import annotations

from typing import Any

import pytest

from reward_server.errors import SetupError
from reward_server.sandbox.docker.runc import RuncRating, check_version, rate


def description(version: str, commit: str = "") -> dict[str, Any]:
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
        ("1.1.11", "v1.1.11-0-g4bccb38c", RuncRating.VULNERABLE),
        ("1.0.0-rc93", "", RuncRating.VULNERABLE),
        ("1.1.5+ds1", "1.1.5+ds1-1", RuncRating.VULNERABLE),
        ("1.1.5+ds1", "1.1.5+ds1-1+deb12u1", RuncRating.OLD),
        ("1.1.5+ds1", "1.1.5+ds1-1+deb12u10", RuncRating.OLD),
        ("1.0.0~rc93+ds1", "1.0.0~rc93+ds1-5+deb11u2", RuncRating.VULNERABLE),
        ("1.0.0~rc93+ds1", "1.0.0~rc93+ds1-5+deb11u3", RuncRating.OLD),
        ("1.1.7-0ubuntu1~22.04.1", "", RuncRating.VULNERABLE),
        ("1.1.7-0ubuntu1~22.04.2", "", RuncRating.OLD),
        ("1.1.7-0ubuntu1~20.04.2", "", RuncRating.OLD),
        ("1.1.7-0ubuntu2.1", "", RuncRating.VULNERABLE),
        ("1.1.7-0ubuntu2.2", "", RuncRating.OLD),
        ("1.1.7", "1.1.7-0ubuntu1~22.04.", RuncRating.VULNERABLE),
        ("1.1.12", "v1.1.12-0-g51d5e946", RuncRating.OLD),
        ("1.1.15+ds1", "1.1.15+ds1-2", RuncRating.OLD),
        ("1.2.0-rc.1", "", RuncRating.OLD),
        ("1.2.7", "", RuncRating.OLD),
        ("1.2.8", "", RuncRating.FIXED),
        ("1.3.0", "", RuncRating.OLD),
        ("1.3.3-0ubuntu1~24.04.2", "", RuncRating.FIXED),
        ("1.3.10", "", RuncRating.FIXED),
        ("1.4.0-rc.2", "", RuncRating.OLD),
        ("1.4.0-rc.3", "", RuncRating.FIXED),
        ("1.4.0", "", RuncRating.FIXED),
        ("1.5.1-0ubuntu2", "", RuncRating.FIXED),
        ("2.0.0", "", RuncRating.FIXED),
        ("N/A", "", RuncRating.OLD),
    ],
)
def test_a_version_is_known_by_its_number_or_its_patch(
    version: str, commit: str, standing: RuncRating
) -> None:
    assert rate(version, commit) is standing


@pytest.mark.parametrize("runtime", ["runc", "nvidia", "io.containerd.runc.v2"])
def test_a_runc_that_programs_can_leave_is_refused(runtime: str) -> None:
    with pytest.raises(SetupError, match=r"1\.1\.11.*CVE-2024-21626.*upgrade.*runsc"):
        check_version(description("1.1.11"), runtime)


def test_a_runc_without_later_fixes_is_mentioned() -> None:
    text = check_version(description("1.1.5+ds1", "1.1.5+ds1-1+deb12u1"), "runc")
    assert text is not None
    assert "CVE-2025-31133" in text
    assert "runsc" in text
    assert check_version(description("1.3.3"), "runc") is None


@pytest.mark.parametrize("runtime", ["runsc", "crun", "kata"])
def test_other_runtimes_are_not_checked(runtime: str) -> None:
    assert check_version(description("1.1.11"), runtime) is None


def test_an_engine_without_component_versions_is_not_checked() -> None:
    assert (
        check_version({"Components": [{"Name": "OCI Runtime (crun)", "Version": "1.8"}]}, "runc")
        is None
    )
    assert check_version({"Version": "4.3.1"}, "runc") is None
