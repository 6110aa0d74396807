"""The protocol of graders: a true score for a valid submission, a fixed text for all others.

A grader gets the bytes of one file and the private answers, in a process that runs no program.
Only the score that it returns depends on the answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from reward_server.model import Execution, Grade
    from reward_server.tasks.base import Task


class Grader(Protocol):
    """Turns the artifact of a program into a score."""

    async def grade(self, execution: Execution, task: Task) -> Grade:
        """Grade the artifact of an execution; a failed execution keeps its failure.

        Raises:
            InfrastructureError: `grader_error` when the fault is the grader's own.
        """
        ...

    async def aclose(self) -> None:
        """Stop every process this grader started."""
        ...
