"""What the sandboxes do alike: lease slots, run a program in one of them, say what happened."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING

from reward_server.errors import InfrastructureError, SetupError, boundary
from reward_server.model import (
    AdHocProgram,
    Box,
    ErrorKind,
    Execution,
    Instrumentation,
    Instrumented,
    Limits,
    Program,
)
from reward_server.sandbox import blame
from reward_server.sandbox.leases import SlotLease, SlotLeases, share_cores
from reward_server.sandbox.payload import RunInstructions
from reward_server.sandbox.run_report import RunReport, build_execution

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from pathlib import Path

    from reward_server.sandbox.base import Capacity
    from reward_server.sandbox.output import Output
    from reward_server.sandbox.stall import StallDetector


class SlotSandbox(ABC):
    """A sandbox with one slot per core; programs beyond that wait in order."""

    def __init__(self, box: Box, capacity: Capacity) -> None:
        self.box = box
        cores = sorted(os.sched_getaffinity(0))
        self._slot_cores = [share_cores(cores, i, capacity.slots) for i in range(capacity.slots)]
        self._leases = SlotLeases(self._slot_cores, capacity.memory_bytes)
        self._contended_above = capacity.contended_above
        self._is_closed = False

    async def execute(
        self, instrumented: Instrumented, task_id: str, public: Path, limits: Limits
    ) -> Execution:
        """Run the program as `Sandbox.execute` promises."""
        if instrumented.failure is not None:
            return Execution(self.box, instrumented.failure)
        return await self._run_leased(RunInstructions(instrumented, limits, task_id, public))

    async def run(
        self, program: AdHocProgram, limits: Limits, queue_timeout_seconds: float
    ) -> Execution:
        """Run an ad hoc program as `Sandbox.run` promises."""
        instructions = RunInstructions.for_ad_hoc(program, limits)
        return await self._run_leased(instructions, queue_timeout_seconds)

    async def _run_leased(
        self, instructions: RunInstructions, queue_timeout_seconds: float | None = None
    ) -> Execution:
        self._refuse_if_closed()
        queued_at, limits = time.monotonic(), instructions.limits
        async with self._leases.acquire(
            limits.cores, limits.memory_bytes, queue_timeout_seconds
        ) as lease:
            queue_seconds = time.monotonic() - queued_at
            with boundary(ErrorKind.SANDBOX_LOST, "execute"):
                execution = await self._run(lease, instructions)
        return replace(execution, queue_seconds=queue_seconds)

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            message = "the sandbox has been closed"
            raise InfrastructureError(ErrorKind.SANDBOX_UNAVAILABLE, message)

    @abstractmethod
    async def _run(self, lease: SlotLease, instructions: RunInstructions) -> Execution:
        """Run a program in the first slot of a lease."""

    def _conclude(
        self,
        report: RunReport,
        instructions: RunInstructions,
        output: Output,
        stall_detector: StallDetector,
    ) -> Execution:
        """Return the run as a value, without the times it waited and booted.

        Raises:
            InfrastructureError: when the host, not the program, ended the run.
        """
        has_stalled = stall_detector.stalled and report.interrupted
        report = replace(
            report,
            output_exceeded=output.exceeded,
            stalled_seconds=instructions.limits.stall_seconds if has_stalled else None,
        )
        blame.raise_if_sandbox_failed(report, output.err.text())
        return build_execution(report, self.box, output, instructions.fetch, self._contended_above)


def probe_instructions(memory_bytes: int, public: Path | None = None) -> RunInstructions:
    """Return the instructions for an empty program."""
    nothing = Instrumented(Program("pass"), (), Instrumentation("off"))
    limits = Limits(30.0, memory_bytes, 1 << 20, 16, 64, 1 << 16, 1 << 16)
    return RunInstructions(nothing, limits, "probe", public)


async def check_probe(running: Awaitable[Execution], box: str, remedy: str = "") -> None:
    """Run an empty program, so that a machine without isolation fails at the start.

    Raises:
        SetupError: when it did not run or did not end well.
    """
    try:
        execution = await running
    except InfrastructureError as error:
        message = f"no {box} can be started here ({error.message}; see the log){remedy}"
        raise SetupError(message) from error
    if execution.exit_code != 0:
        message = f"an empty program failed in its {box}: {execution.stderr_tail}"
        raise SetupError(message)
