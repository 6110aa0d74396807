"""Asks the parsing child about programs, and tells a program's fault from ours.

A program on which the child dies or runs out of time is too complex to parse, which is that
program's `syntax_error`. A child that does not answer for the simplest program either is
broken, which is ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reward_server.errors import InfrastructureError
from reward_server.model import (
    ErrorKind,
    Failure,
    Instrumentation,
    Instrumented,
    Marker,
    Milestone,
)
from reward_server.subprocess_pool import NoAnswerError, SubprocessPool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reward_server.instrument.lm.prompts import Mode
    from reward_server.model import Program
    from reward_server.subprocess_pool import Message

DEADLINE_SECONDS = 10.0
_SIMPLEST = b"pass"
_MODULE = "reward_server.instrument.parser_process"


@dataclass(frozen=True, slots=True)
class Parsed:
    """What the parsing child says of a program: its markers, or why it cannot be compiled.

    `text` is the program without its comments, where that was asked for.
    """

    markers: tuple[Marker, ...] = ()
    reason: str | None = None
    failure: Failure | None = None
    text: str | None = None


class Parser:
    """A pool of parsing children."""

    def __init__(self, size: int = 1, deadline_seconds: float = DEADLINE_SECONDS) -> None:
        self._pool = SubprocessPool(_MODULE, size)
        self._deadline_seconds = deadline_seconds

    async def start(self) -> None:
        """Start every child now instead of at its first program."""
        await self._pool.start()

    async def parse(self, code: str) -> Parsed:
        """Tell whether a program compiles."""
        return await self._ask({}, code)

    async def find(self, code: str) -> Parsed:
        """Return the markers the static finder places in a program."""
        return await self._ask({"find": True}, code)

    async def check(self, code: str, markers: Sequence[Marker]) -> Parsed:
        """Return markers placed by someone else if they pass verification, else the reason."""
        places = [[marker.line, marker.column, int(marker.milestone)] for marker in markers]
        return await self._ask({"markers": places}, code)

    async def view(self, code: str) -> Parsed:
        """Return the text of a program without its comments, if it compiles."""
        return await self._ask({"view": True}, code)

    async def place(self, code: str, answer: str, mode: Mode) -> Parsed:
        """Return the markers a language model asks for that hold, and what was left out.

        A failure is the answer's, on which the child died, if the program is known to compile.
        """
        return await self._ask({"answer": answer, "mode": mode.value}, code)

    async def aclose(self) -> None:
        """Kill every child."""
        await self._pool.aclose()

    async def _ask(self, question: Message, code: str) -> Parsed:
        try:
            blob = code.encode()
        except UnicodeEncodeError:
            return Parsed(failure=_syntax_error("the program cannot be encoded as UTF-8"))
        try:
            return _read(await self._pool.ask(question, blob, self._deadline_seconds))
        except NoAnswerError:
            await self._ensure_alive()
            return Parsed(failure=_syntax_error("the program is too complex to parse"))

    async def _ensure_alive(self) -> None:
        try:
            await self._pool.ask({}, _SIMPLEST, self._deadline_seconds)
        except NoAnswerError as error:
            message = "the parsing process does not answer"
            raise InfrastructureError(ErrorKind.WORKER_LOST, message) from error


class StaticInstrumenter:
    """Finds milestones by reading the syntax tree; needs no model."""

    kind = "static"

    def __init__(self, size: int = 1, deadline_seconds: float = DEADLINE_SECONDS) -> None:
        self.parser = Parser(size, deadline_seconds)

    async def instrument(self, program: Program) -> Instrumented:
        """Return the program with the markers found in it.

        Raises:
            InfrastructureError: `worker_lost` when the parsing child does not work.
        """
        if program.failure is not None:
            return Instrumented(program, (), Instrumentation(self.kind), program.failure)
        parsed = await self.parser.find(program.code)
        verified = parsed.failure is None and parsed.reason is None
        by = Instrumentation(self.kind, verified=verified, reason=parsed.reason)
        return Instrumented(program, parsed.markers, by, parsed.failure)

    async def aclose(self) -> None:
        """Stop the parsing children."""
        await self.parser.aclose()


def _syntax_error(message: str) -> Failure:
    return Failure(ErrorKind.SYNTAX_ERROR, message)


def _read(answer: Message) -> Parsed:
    if answer.get("syntax_error"):
        line = answer.get("line")
        where = f" (line {line})" if isinstance(line, int) else ""
        return Parsed(failure=_syntax_error(f"the program is not valid Python{where}"))
    markers = tuple(
        Marker(line, column, Milestone(milestone)) for line, column, milestone in answer["markers"]
    )
    return Parsed(markers, answer.get("reason"), text=answer.get("text"))
