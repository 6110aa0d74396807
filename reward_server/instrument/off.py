"""No instrumentation: programs are only compiled, to find syntax errors early."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reward_server.instrument.parser import DEADLINE_SECONDS, Parser
from reward_server.model import Instrumentation, Instrumented

if TYPE_CHECKING:
    from reward_server.model import Program


class OffInstrumenter:
    """Places no markers."""

    kind = "off"

    def __init__(self, size: int = 1, deadline_seconds: float = DEADLINE_SECONDS) -> None:
        self.parser = Parser(size, deadline_seconds)

    async def instrument(self, program: Program) -> Instrumented:
        """Return the program without markers, with its syntax error if it has one.

        Raises:
            InfrastructureError: `worker_lost` when the parsing child does not work.
        """
        failure = program.failure or (await self.parser.parse(program.code)).failure
        return Instrumented(program, (), Instrumentation(self.kind), failure)

    async def aclose(self) -> None:
        """Stop the parsing children."""
        await self.parser.aclose()
