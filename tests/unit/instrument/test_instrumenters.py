from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reward_server.errors import InfrastructureError
from reward_server.instrument import parser_process
from reward_server.instrument.lm.endpoint import LmEndpoint
from reward_server.instrument.lm.instrumenter import LmInstrumenter
from reward_server.instrument.off import OffInstrumenter
from reward_server.instrument.parser import StaticInstrumenter
from reward_server.model import ErrorKind, Failure, Instrumentation, Marker, Milestone, Program
from reward_server.subprocess_pool import SubprocessPool
from tests.support.lm_endpoints import MODEL, ScriptedEndpoint, places
from tests.unit.instrument.corpus import PROGRAMS

if TYPE_CHECKING:
    import ast
    from collections.abc import AsyncIterator

CODE = next(path for path in PROGRAMS if path.stem == "pizza_flat").read_text()


@pytest.fixture(scope="module")
async def static() -> AsyncIterator[StaticInstrumenter]:
    instrumenter = StaticInstrumenter(size=1, deadline_seconds=20)
    yield instrumenter
    await instrumenter.aclose()


@pytest.fixture(scope="module")
async def off() -> AsyncIterator[OffInstrumenter]:
    instrumenter = OffInstrumenter(size=1)
    yield instrumenter
    await instrumenter.aclose()


@pytest.fixture(scope="module")
async def lm() -> AsyncIterator[LmInstrumenter]:
    """Give one that asks about every program, however long, and gets an answer about line 1."""
    with ScriptedEndpoint() as scripted:
        scripted.behave = places(*((1, milestone.label) for milestone in Milestone))
        endpoint = LmEndpoint(scripted.url, MODEL, context_tokens=10**9)
        instrumenter = LmInstrumenter(StaticInstrumenter(deadline_seconds=20), endpoint)
        yield instrumenter
        await instrumenter.aclose()


async def test_static_places_verified_markers(static: StaticInstrumenter) -> None:
    program = Program(CODE)
    instrumented = await static.instrument(program)
    assert instrumented.program is program
    assert instrumented.failure is None
    assert instrumented.instrumentation == Instrumentation("static", verified=True)
    assert {marker.milestone for marker in instrumented.markers} == set(Milestone)


async def test_off_places_none(off: OffInstrumenter) -> None:
    instrumented = await off.instrument(Program(CODE))
    assert (instrumented.markers, instrumented.failure) == ((), None)
    assert instrumented.instrumentation == Instrumentation("off")


async def test_a_failed_program_is_handed_on_without_asking_a_child() -> None:
    program = Program("", failure=Failure(ErrorKind.NO_CODE, "none"))
    for instrumenter in (StaticInstrumenter(size=0), OffInstrumenter(size=0)):
        instrumented = await instrumenter.instrument(program)
        assert instrumented.failure is program.failure
        assert instrumented.instrumentation == Instrumentation(instrumenter.kind)


BROKEN = {
    "prose": "I will fit a ridge.",
    "return outside": "return 1",
    "nonlocal": "nonlocal x",
    "await outside": "await x",
    "nul": "x = 1\0",
    "byte-order mark": "\ufeffx = 1",
    "surrogate": "x = '\ud800'",
    "a million parentheses": "(" * 10**6 + ")" * 10**6,
    "ten megabytes of brackets": "[" * 10**7,
    "a hundred thousand terms": "x = " + "1+" * 10**5 + "1",
    "a hundred thousand attributes": "x" + ".x" * 10**5,
    "nested lambdas": "x = " + "lambda: " * 50_000 + "1",
    "nested calls": "f(" * 50_000 + ")" * 50_000,
    "nested unary": "x = " + "-" * 10**6 + "1",
    "nested blocks": "".join(" " * i + "if x:\n" for i in range(200)) + " " * 200 + "x",
    "huge integer": "x = " + "1" * 10**5,
}


@pytest.mark.parametrize("name", BROKEN)
async def test_what_cannot_be_compiled_is_a_syntax_error(
    static: StaticInstrumenter, off: OffInstrumenter, lm: LmInstrumenter, name: str
) -> None:
    for instrumenter in (static, off, lm):
        instrumented = await instrumenter.instrument(Program(BROKEN[name]))
        assert instrumented.failure is not None
        assert instrumented.failure.kind is ErrorKind.SYNTAX_ERROR
        assert instrumented.markers == ()
    assert (await static.instrument(Program(CODE))).markers


ODD = {
    "one huge line": "x = 1; " * 50_000,
    "one huge string": "x = '" + "a" * 5_000_000 + "'",
    "a wide list": "x = [" + "1," * 100_000 + "]",
    "crlf": CODE.replace("\n", "\r\n"),
    "cookie": "# -*- coding: latin-1 -*-\n" + CODE,
    "form feeds": CODE.replace("\n\n", "\n\x0c\n"),
    "syntax warnings": "x = 1 is 1\ny = '\\d'\n" + CODE,
    "deep but runnable": "x = " + "(" * 80 + "1" + ")" * 80 + "\ny = 1" + "+1" * 900,
    "many functions": "".join(f"def f{i}(x): return f{i + 1}(x)\n" for i in range(5000)),
    "one name in itself": "x = [1]\n" + "x = [x, x, x]\n" * 5000,
    "many classes": "class A0: pass\n"
    + "".join(f"class A{i + 1}(A{i}): pass\n" for i in range(3000)),
}


@pytest.mark.parametrize("name", ODD)
async def test_odd_programs_are_still_programs(
    static: StaticInstrumenter, lm: LmInstrumenter, name: str
) -> None:
    for instrumenter in (static, lm):
        instrumented = await instrumenter.instrument(Program(ODD[name]))
        assert instrumented.failure is None
        assert instrumented.instrumentation.verified


async def test_the_message_names_the_line_and_quotes_nothing(static: StaticInstrumenter) -> None:
    instrumented = await static.instrument(Program("x = 1\nsecret = (\n"))
    assert instrumented.failure == Failure(
        ErrorKind.SYNTAX_ERROR, "the program is not valid Python (line 2)"
    )


async def test_a_program_past_the_deadline_is_too_complex() -> None:
    instrumenter = StaticInstrumenter(size=1, deadline_seconds=0.6)
    await instrumenter.parser.parse("pass")
    instrumented = await instrumenter.instrument(Program("x = [1, 2]\n" * 400_000))
    await instrumenter.aclose()
    assert instrumented.failure is not None
    assert instrumented.failure.message == "the program is too complex to parse"


async def test_a_child_that_never_answers_is_our_fault() -> None:
    instrumenter = StaticInstrumenter(size=1)
    instrumenter.parser._pool = SubprocessPool("reward_server.instrument.missing", 1)
    with pytest.raises(InfrastructureError) as caught:
        await instrumenter.instrument(Program(CODE))
    await instrumenter.aclose()
    assert caught.value.kind is ErrorKind.WORKER_LOST


async def test_markers_of_others_are_checked(static: StaticInstrumenter) -> None:
    good, bad = Marker(1, 0, Milestone.LOADED_DATA), Marker(1, 1, Milestone.LOADED_DATA)
    assert (await static.parser.check("x = 1", [good])).markers == (good,)
    refused = await static.parser.check("x = 1", [good, bad])
    assert refused.markers == ()
    assert refused.reason is not None


def test_a_fault_of_the_finder_costs_the_markers_and_not_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_: ast.Module) -> tuple[Marker, ...]:
        raise KeyError

    monkeypatch.setattr(parser_process, "find_markers", fail)
    monkeypatch.setattr(parser_process.sys, "setrecursionlimit", lambda _: None)
    answer = parser_process.answer({"find": True}, b"x = 1")
    assert answer == {"markers": [], "reason": "the static finder stage failed"}
