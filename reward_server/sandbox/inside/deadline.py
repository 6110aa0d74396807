"""When the time of a run is up, and the one place where that kills its program."""

from __future__ import annotations

import time

TYPE_CHECKING = False  # the box scripts do without the typing module
if TYPE_CHECKING:
    from collections.abc import Callable

    from reward_server.sandbox.inside.run_observation import RunObservation


class Deadline:
    """Limits the start of a box first, and its program from the launch on."""

    def __init__(self, boot_seconds: float) -> None:
        self._end_ns = time.monotonic_ns() + int(boot_seconds * 1e9)

    def limit_program(self, start_ns: int, wall_seconds: float) -> None:
        """Replace the time to boot by the program's own time, counted from its launch."""
        self._end_ns = start_ns + int(wall_seconds * 1e9)

    @property
    def seconds_left(self) -> float:
        """Return how long the run may still take."""
        return max(0.0, (self._end_ns - time.monotonic_ns()) / 1e9)

    def kill_if_over(self, observation: RunObservation, kill: Callable[[], None]) -> bool:
        """Kill the program if its time is up, and note that this is why it ended.

        The supervisors of all three sandboxes call this. They run outside the reach of the
        program (another process namespace, or an init that ignores its signals), so nothing the
        program does delays the kill.
        """
        if self.seconds_left > 0:
            return False
        observation.timed_out = True
        kill()
        return True
