"""Real training by TRL on the CPU, with a real reward server; see `make test-trainers`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.verl.conftest import BOOK, arena, asked

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["arena", "asked", "models"]


@pytest.fixture(scope="session")
def models() -> Iterator[Path]:
    """Make a tiny policy whose words are whole answers, and its tokenizer."""
    from trainer_client.integrations.verl.phrases import make  # noqa: PLC0415  # imports torch

    with tempfile.TemporaryDirectory(prefix="reward-server-trl-") as name:
        make(Path(name), BOOK)
        yield Path(name)
