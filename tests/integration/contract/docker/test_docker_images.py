"""The scan lets our image pass and finds what must not be in one."""

from __future__ import annotations

import io
import subprocess
import tarfile
from typing import TYPE_CHECKING

import pytest

from tests.conftest import IMAGE
from tests.integration.contract.boxes import ROOT, unique

if TYPE_CHECKING:
    from tests.integration.contract.docker.containers import Api


def scan(image: str) -> subprocess.CompletedProcess[str]:
    line = [str(ROOT / "sandbox_images" / "scan"), image]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def make_image(name: str, path: str, *change: str) -> None:
    """Make an image of one file."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.addfile(tarfile.TarInfo(path))
    changes = [part for text in change for part in ("--change", text)]
    line = ["docker", "import", *changes, "-", name]
    subprocess.run(line, input=archive.getvalue(), capture_output=True, check=True)


def test_the_image_of_the_boxes_holds_nothing_private() -> None:
    found = scan(IMAGE)
    assert (found.returncode, found.stderr) == (0, "")


@pytest.mark.parametrize(
    ("path", "change", "text"),
    [
        ("harmless", (), ""),
        ("data/task/prepared/private/test.csv", (), "private/test.csv"),
        ("etc/pip.conf", (), "etc/pip.conf"),
        ("root/.netrc", (), ".netrc"),
        ("harmless", ("ENV PIP_INDEX_URL=x",), "PIP_"),
        ("harmless", ("LABEL source=https://example.org",), "https://"),
    ],
)
def test_what_must_not_be_in_an_image_is_found(
    api: Api, path: str, change: tuple[str, ...], text: str
) -> None:
    name = unique("scan")
    make_image(name, path, *change)
    try:
        found = scan(name)
    finally:
        api.remove_image(name, force=True)
    assert bool(found.returncode) == bool(text)
    assert text in found.stderr
