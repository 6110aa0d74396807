"""The protocol of all sandboxes: one program, one disposable box, one execution.

The program sees its public data at `/workdir/<task>/prepared/public`, an empty private current
directory, no network and no private label. When `execute` returns, every process of the box is dead
and the box is removed. What the program did is returned as a value; only a fault of the sandbox
itself is raised.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from reward_server.model import AdHocProgram, Box, Execution, Instrumented, Limits


@dataclass(frozen=True, slots=True)
class Capacity:
    """What all programs together may use, and above which pressure a duration is contended."""

    slots: int
    memory_bytes: int
    contended_above: float = 0.1


class Sandbox(Protocol):
    """Runs programs, as many at once as there are slots; the rest wait in order."""

    box: Box

    async def start(self) -> None:
        """Prepare to run programs.

        Raises:
            SetupError: when this machine cannot isolate programs; the text names the remedy.
        """
        ...

    async def execute(
        self, instrumented: Instrumented, task_id: str, public: Path, limits: Limits
    ) -> Execution:
        """Run the program once in a fresh box and return what happened.

        Raises:
            InfrastructureError: `sandbox_unavailable` when no box could be started,
                `sandbox_lost` when one was lost through no act of the program.
        """
        ...

    async def run(
        self, program: AdHocProgram, limits: Limits, queue_timeout_seconds: float
    ) -> Execution:
        """Run an ad hoc program once in a fresh box that has no task's data.

        The execution has its whole output, up to `limits.output_bytes` of each stream, and the
        requested files it left, up to `limits.artifact_bytes` together.

        Raises:
            TimeoutError: when it got no slot in time; nothing has run then.
            InfrastructureError: as `execute`.
        """
        ...

    async def aclose(self) -> None:
        """Kill every box and stop."""
        ...
