"""An endpoint for every test, and a folder for its evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.endpoints import ScriptedEndpoint
from tests.evaluate.model import Command

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import RunningServer


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint() as endpoint:
        yield endpoint


@pytest.fixture
def command(server: RunningServer, endpoint: ScriptedEndpoint, tmp_path: Path) -> Command:
    return Command(server.url, endpoint, tmp_path / "out")
