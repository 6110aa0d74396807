"""What a grader promises: a true score for valid bytes, a fixed text for all others.

It sees the bytes of one file and the private answers, in a process of its own that no
program ever shares. Nothing it says to a client is derived from the answers but the score.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from reward_server.model import Execution, Grade
    from reward_server.tasks.base import Task


class InvalidSubmissionError(Exception):
    """The submission cannot be scored; the text stays inside the grading process."""


class Grader(Protocol):
    """Turns what a program left behind into a score."""

    async def grade(self, execution: Execution, task: Task) -> Grade:
        """Grade the artifact of an execution; a failed execution keeps its failure.

        Raises:
            InfrastructureError: `grader_error` when the fault is the grader's own.
        """
        ...

    async def aclose(self) -> None:
        """Stop every process this grader started."""
        ...
