"""One server with two slots and keys, for what prepares training runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conftest import start_server, stop_server
from tests.support.job_client import SETTINGS, own_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def keyed_url(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    log = tmp_path_factory.mktemp("launch") / "log"
    with own_folder(data_dir) as folder:
        process, url = start_server(folder, log, SETTINGS)
        try:
            yield url
        finally:
            stop_server(process)
