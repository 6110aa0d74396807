"""What a supervisor notes while a run goes on; the server reads it as a `RunReport`."""

from __future__ import annotations

import json
import marshal

TYPE_CHECKING = False  # typing and dataclasses would double a supervisor's memory
if TYPE_CHECKING:
    import resource
    import socket

    from reward_server.sandbox.inside import fd_channel
else:
    import fd_channel

_FOLDERS = 3  # that a program can write to: the work directory, /tmp and /dev/shm


class RunObservation:
    """One run; every field is a field of `RunReport`, and times are monotonic nanoseconds."""

    def __init__(self) -> None:
        self.launched = False
        self.start_ns = 0
        self.end_ns = 0
        self.exit_code = 0
        self.timed_out = False
        self.interrupted = False
        self.cpu_seconds = 0.0
        self.peak_memory_bytes = 0
        self.oom_kills = 0
        self.processes_refused = 0
        self.disk_full = False
        self.artifact_status = "absent"
        self.file_statuses: list[str] = []

    def note_launch(self, control: socket.socket) -> list[int]:
        """Read the launcher's message: the start time and descriptors of the writable folders.

        The launcher sends it before the program's first line and closes the socket, so that the
        program cannot send another one. A launcher that died sends nothing.
        """
        text, folders = fd_channel.receive(control, 64, _FOLDERS)
        if text and len(folders) == _FOLDERS:
            self.start_ns = marshal.loads(text)  # noqa: S302 - sent before the program ran
            self.launched = True
        return folders

    def note_usage(self, usage: resource.struct_rusage) -> None:
        """Add what one dead process used, for kernels that do not count for the whole box."""
        self.cpu_seconds += usage.ru_utime + usage.ru_stime
        self.peak_memory_bytes = max(self.peak_memory_bytes, usage.ru_maxrss * 1024)

    def to_json(self) -> bytes:
        """Return the report as the server reads it."""
        return json.dumps(vars(self)).encode()
