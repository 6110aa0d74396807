"""Sends programs to the parsing child, and tells a program's fault from the server's.

If the child dies or runs out of time on a program, the program is too complex to parse, which is
a `syntax_error` of the program. If the child then fails on the simplest program too, the child is
broken, which is an error of the server.
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
    """The parsing child's result: the markers of a program, or why it does not compile.

    `text` is the program without its comments, set by `strip_comments` only.
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
        """Start every child now instead of at its first request."""
        await self._pool.start()

    async def parse(self, code: str) -> Parsed:
        """Check that a program compiles."""
        return await self._request({}, code)

    async def find_markers(self, code: str) -> Parsed:
        """Return the markers that the static analyzer finds in a program."""
        return await self._request({"find": True}, code)

    async def check_markers(self, code: str, markers: Sequence[Marker]) -> Parsed:
        """Return the given markers if they pass verification, else the reason why not."""
        positions = [[marker.line, marker.column, int(marker.milestone)] for marker in markers]
        return await self._request({"markers": positions}, code)

    async def strip_comments(self, code: str) -> Parsed:
        """Return a program without its comments, if it compiles."""
        return await self._request({"strip_comments": True}, code)

    async def read_reply(self, code: str, reply: str, mode: Mode) -> Parsed:
        """Return the valid markers of a language model's reply, and what was left out.

        If the program is known to compile, a failure means that the reply broke the child.
        """
        return await self._request({"reply": reply, "mode": mode.value}, code)

    async def aclose(self) -> None:
        """Kill every child."""
        await self._pool.aclose()

    async def _request(self, request: Message, code: str) -> Parsed:
        try:
            blob = code.encode()
        except UnicodeEncodeError:
            return Parsed(failure=_syntax_error("the program cannot be encoded as UTF-8"))
        try:
            return _read(await self._pool.ask(request, blob, self._deadline_seconds))
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
    """Finds milestones in the syntax tree, without a language model."""

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
        parsed = await self.parser.find_markers(program.code)
        verified = parsed.failure is None and parsed.reason is None
        by = Instrumentation(self.kind, verified=verified, reason=parsed.reason)
        return Instrumented(program, parsed.markers, by, parsed.failure)

    async def aclose(self) -> None:
        """Stop the parsing children."""
        await self.parser.aclose()


def _syntax_error(message: str) -> Failure:
    return Failure(ErrorKind.SYNTAX_ERROR, message)


def _read(response: Message) -> Parsed:
    if response.get("syntax_error"):
        line = response.get("line")
        where = f" (line {line})" if isinstance(line, int) else ""
        return Parsed(failure=_syntax_error(f"the program is not valid Python{where}"))
    markers = tuple(Marker(a, b, Milestone(milestone)) for a, b, milestone in response["markers"])
    return Parsed(markers, response.get("reason"), text=response.get("text"))
