"""What the language model said about a program is cached; its transient failures are not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reward_server.instrument.lm.prompts import PROMPT_VERSION, Mode
from reward_server.model import (
    Marker,
    MarkerPlacement,
    MarkerPlacementKey,
    Milestone,
    Program,
)
from tests.support.lm_endpoints import (
    MODEL,
    ScriptedEndpoint,
    marks,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from reward_server.instrument.lm.instrumenter import LmInstrumenter

    Make = Callable[..., LmInstrumenter]

from tests.unit.instrument.lm_examples import BY_LM, CODE, GOOD, GOOD_MARKERS, USELESS, MemoryCache


async def test_a_placement_is_cached_and_not_requested_again(
    scripted: ScriptedEndpoint, make: Make
) -> None:
    cache = MemoryCache()
    first = await make(cache).instrument(Program(CODE))
    scripted.stop_listening()
    again = await make(cache).instrument(Program(CODE, plan="another plan"))
    assert again.markers == first.markers
    assert again.instrumentation == BY_LM
    key = MarkerPlacementKey(Program(CODE).digest, "insert", MODEL, PROMPT_VERSION)
    assert cache.kept == {key: MarkerPlacement(GOOD_MARKERS)}


@pytest.mark.parametrize("name", ["prose", "null", "cut", "all at the top", "no places"])
async def test_a_useless_reply_is_cached_too(
    scripted: ScriptedEndpoint, make: Make, name: str
) -> None:
    scripted.behave, reason = USELESS[name]
    cache = MemoryCache()
    for _ in range(2):
        instrumented = await make(cache).instrument(Program(CODE))
        assert reason in str(instrumented.instrumentation.reason)
    assert len(scripted.requests) == 1


@pytest.mark.parametrize("name", ["five hundred", "too busy", "hanging", "refused", "flooding"])
async def test_a_transient_failure_is_not_cached(
    scripted: ScriptedEndpoint, make: Make, name: str
) -> None:
    scripted.behave, _ = USELESS[name]
    cache = MemoryCache()
    await make(cache, deadline_seconds=1.5).instrument(Program(CODE))
    assert cache.kept == {}
    scripted.behave = marks(*GOOD)
    assert (await make(cache).instrument(Program(CODE))).instrumentation == BY_LM


async def test_other_modes_and_programs_are_separate_requests(
    scripted: ScriptedEndpoint, make: Make
) -> None:
    cache = MemoryCache()
    await make(cache).instrument(Program(CODE))
    await make(cache).instrument(Program(CODE + "\n"))
    await make(cache, mode=Mode.REWRITE).instrument(Program(CODE))
    assert len(scripted.requests) == 3
    assert len(cache.kept) == 3


async def test_a_broken_cache_costs_nothing(make: Make) -> None:
    cache = MemoryCache()
    cache.is_broken = True
    assert (await make(cache).instrument(Program(CODE))).instrumentation == BY_LM


async def test_cached_markers_that_do_not_verify_are_requested_again(make: Make) -> None:
    cache = MemoryCache()
    key = MarkerPlacementKey(Program(CODE).digest, "insert", MODEL, PROMPT_VERSION)
    cache.kept[key] = MarkerPlacement((Marker(2, 7, Milestone.LOADED_DATA),))
    instrumented = await make(cache).instrument(Program(CODE))
    assert instrumented.markers == GOOD_MARKERS
    assert instrumented.instrumentation == BY_LM
