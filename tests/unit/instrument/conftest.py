"""Instrumenters that ask a scripted language model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from reward_server.instrument.lm.endpoint import LmEndpoint
from reward_server.instrument.lm.instrumenter import LmInstrumenter
from reward_server.instrument.parser import StaticInstrumenter
from tests.support.lm_endpoints import (
    MODEL,
    ScriptedEndpoint,
    marks,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    Make = Callable[..., LmInstrumenter]

from tests.unit.instrument.lm_examples import GOOD, MemoryCache


@pytest.fixture
def scripted() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint() as endpoint:
        endpoint.behave = marks(*GOOD)
        yield endpoint


@pytest.fixture
async def make(scripted: ScriptedEndpoint) -> AsyncIterator[Make]:
    made: list[LmInstrumenter] = []

    def build(
        cache: MemoryCache | None = None,
        deadline_seconds: float = 30.0,
        context_tokens: int = 8192,
        **choices: Any,  # noqa: ANN401
    ) -> LmInstrumenter:
        endpoint = LmEndpoint(
            scripted.url,
            MODEL,
            deadline_seconds=deadline_seconds,
            context_tokens=context_tokens,
            pause_seconds=0.05,
        )
        made.append(LmInstrumenter(StaticInstrumenter(), endpoint, cache, **choices))
        return made[-1]

    yield build
    for instrumenter in made:
        await instrumenter.aclose()
