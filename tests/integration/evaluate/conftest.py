"""An endpoint for every test, and a folder for its evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.evaluate.model import EvaluateCommand
from tests.support.lm_endpoints import ScriptedEndpoint

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import RunningServer


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint() as endpoint:
        yield endpoint


@pytest.fixture
def command(server: RunningServer, endpoint: ScriptedEndpoint, tmp_path: Path) -> EvaluateCommand:
    return EvaluateCommand(server.url, endpoint, tmp_path / "out")
