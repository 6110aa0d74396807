"""The lm instrumenter as a whole: whose markers are used, and what concurrent programs share."""

from __future__ import annotations

import ast
import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from reward_server.instrument.lm.endpoint import EndpointState
from reward_server.instrument.lm.prompts import Mode
from reward_server.instrument.static.analyzer import find_markers
from reward_server.model import (
    ErrorKind,
    Failure,
    Instrumentation,
    Marker,
    Milestone,
    Program,
)
from tests.support.lm_endpoints import (
    MODEL,
    ScriptedEndpoint,
    hangs,
    marks,
    says,
    until,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from reward_server.instrument.lm.instrumenter import LmInstrumenter

    Make = Callable[..., LmInstrumenter]

from tests.unit.instrument.lm_examples import BY_LM, CODE, GOOD, GOOD_MARKERS, USELESS


def static_markers() -> tuple[Marker, ...]:
    return find_markers(ast.parse(CODE))


async def test_the_models_markers_are_used_and_its_name_is_reported(make: Make) -> None:
    program = Program(CODE)
    instrumented = await make().instrument(program)
    assert instrumented.program is program
    assert instrumented.markers == GOOD_MARKERS
    assert instrumented.instrumentation == BY_LM


async def test_a_rewritten_program_is_never_the_program(
    scripted: ScriptedEndpoint, make: Make
) -> None:
    marked = CODE.replace(
        "\nmodel.fit(X_tr, y_tr)", '\nmodel.fit(X_tr, y_tr)\nprint("trained model")'
    )
    scripted.behave = says(f"```python\n{marked}```")
    instrumented = await make(mode=Mode.REWRITE).instrument(Program(CODE))
    assert instrumented.program.code == CODE
    assert instrumented.markers == (Marker(18, 0, Milestone.TRAINED_MODEL),)
    assert instrumented.instrumentation == BY_LM


async def test_merged_markers_are_both_and_checked_together(make: Make) -> None:
    instrumented = await make(merge=True).instrument(Program(CODE))
    assert set(instrumented.markers) == {*GOOD_MARKERS, *static_markers()}
    assert len(set(instrumented.markers)) == len(instrumented.markers)
    assert instrumented.instrumentation == Instrumentation("lm+static", MODEL, verified=True)


async def test_dropped_markers_are_reported(scripted: ScriptedEndpoint, make: Make) -> None:
    scripted.behave = marks(*GOOD, (1, "predicted test labels"), (6, "loaded data"))
    instrumented = await make().instrument(Program(CODE))
    assert instrumented.markers == GOOD_MARKERS
    expected = "left out: 1 not after a statement, 1 not at such a step"
    assert instrumented.instrumentation.reason == expected


@pytest.mark.parametrize("name", USELESS)
@pytest.mark.parametrize("merge", [False, True])
async def test_a_useless_reply_falls_back_to_the_static_analyzer_with_a_reason(
    scripted: ScriptedEndpoint, make: Make, name: str, *, merge: bool
) -> None:
    scripted.behave, reason = USELESS[name]
    instrumented = await make(deadline_seconds=1.5, merge=merge).instrument(Program(CODE))
    assert instrumented.markers == static_markers()
    found = instrumented.instrumentation
    assert (found.kind, found.model, found.verified) == ("static", None, True)
    assert found.reason is not None
    assert reason in found.reason


BOMBS = {
    "parentheses": "(" * 10**4,
    "nested lambdas": "x = " + "lambda: " * 1500 + "1",
    "a long sum": "x = " + "1+" * 5000 + "1",
    "a huge program": "x = [1, 2, 3]\n" * 250_000,
    "a wide line": "x = 1;" * 2000,
}


@pytest.mark.parametrize("name", BOMBS)
async def test_a_reply_that_breaks_the_parser_is_not_the_programs_fault(
    scripted: ScriptedEndpoint, make: Make, name: str
) -> None:
    scripted.behave = says(BOMBS[name])
    instrumenter = make(mode=Mode.REWRITE)
    instrumented = await instrumenter.instrument(Program(CODE))
    assert instrumented.failure is None
    assert instrumented.instrumentation.kind == "static"
    assert instrumented.markers == static_markers()


async def test_a_program_that_does_not_parse_causes_no_request(
    scripted: ScriptedEndpoint, make: Make
) -> None:
    for code in ("for x in:", "x = '\ud800'", "(" * 10**6):
        instrumented = await make().instrument(Program(code))
        assert instrumented.failure is not None
        assert instrumented.failure.kind is ErrorKind.SYNTAX_ERROR
    failed = Program("", failure=Failure(ErrorKind.NO_CODE, "none"))
    assert (await make().instrument(failed)).failure is failed.failure
    assert scripted.requests == []


@pytest.mark.parametrize("mode", Mode)
async def test_a_program_longer_than_the_context_is_not_sent(
    scripted: ScriptedEndpoint, make: Make, mode: Mode
) -> None:
    long = CODE + "x = 1\n" * 5000
    instrumented = await make(mode=mode).instrument(Program(long))
    assert instrumented.instrumentation.kind == "static"
    assert instrumented.instrumentation.reason == "the program is too long for the language model"
    assert scripted.requests == []


async def test_identical_concurrent_programs_share_one_request(
    scripted: ScriptedEndpoint, make: Make
) -> None:
    instrumenter = make()
    programs = [Program(CODE, plan=str(number)) for number in range(20)]
    found = await asyncio.gather(*map(instrumenter.instrument, programs))
    assert [each.program for each in found] == programs
    assert {each.markers for each in found} == {GOOD_MARKERS}
    assert len(scripted.requests) == 1


async def test_cancelling_one_waiter_stops_no_other(scripted: ScriptedEndpoint, make: Make) -> None:
    released = threading.Event()

    async def wait(body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        await until(released.is_set)
        await marks(*GOOD)(body, writer)

    scripted.behave = wait
    instrumenter = make()
    first = asyncio.create_task(instrumenter.instrument(Program(CODE)))
    second = asyncio.create_task(instrumenter.instrument(Program(CODE)))
    await until(lambda: bool(scripted.requests))
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    released.set()
    assert (await second).instrumentation == BY_LM


async def test_many_programs_are_instrumented_concurrently(
    scripted: ScriptedEndpoint, make: Make
) -> None:
    async def meet(body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        await until(lambda: scripted.peak_concurrency == 48)
        await marks(*GOOD)(body, writer)

    scripted.behave = meet
    instrumenter = make(deadline_seconds=120)
    programs = [Program(f"{CODE}\nx = {number}") for number in range(48)]
    found = await asyncio.gather(*map(instrumenter.instrument, programs))
    assert {each.instrumentation for each in found} == {BY_LM}


async def test_a_model_that_comes_back_is_used_again(
    scripted: ScriptedEndpoint, make: Make
) -> None:
    instrumenter = make()
    scripted.stop_listening()
    for number in range(5):
        down = await instrumenter.instrument(Program(f"{CODE}\nx = {number}"))
        assert down.instrumentation.kind == "static"
    assert instrumenter._endpoint.state is not EndpointState.READY
    scripted.start_listening()
    await until(lambda: instrumenter._endpoint.state is EndpointState.READY)
    assert (await instrumenter.instrument(Program(CODE))).instrumentation == BY_LM


async def test_closing_cancels_what_is_in_flight(scripted: ScriptedEndpoint, make: Make) -> None:
    scripted.behave = hangs
    instrumenter = make()
    task = asyncio.create_task(instrumenter.instrument(Program(CODE)))
    await until(lambda: bool(scripted.requests))
    await instrumenter.aclose()
    with pytest.raises(asyncio.CancelledError):
        await task
