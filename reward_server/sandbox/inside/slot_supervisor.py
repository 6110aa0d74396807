"""One slot's supervisor: a small process that starts boxes, watches them and reaps them.

It runs on the host as a script of its own (`python -I -S slot_supervisor.py FD`), with one thread
and nothing but the standard library. It lives in the slot's cgroup and on the slot's cores, and
every box inherits both. Started by root, it first binds the folders that boxes are built from in
a mount namespace of its own and then becomes the slot's unprivileged account for good, before any
`bwrap`; an ordinary user has nothing to drop. As a subreaper it inherits every orphan below it:
when it reports the end of a run, no process of that box exists any more. That is why a run's
duration ends at the death of the last process and not of the first: a program cannot report a
short time and go on computing.

The protocol on the socket, one message a packet:
1. server to supervisor: the configuration, as JSON; the answer is `ready`.
2. server to supervisor, for each run: a request, as JSON, with the descriptors
   [payload, stdout, stderr].
3. server to supervisor, at any time: `kill` ends the present run early.
4. supervisor to server: the observation, as JSON, with the descriptors of the artifact and of the
   requested files that exist.
A closed socket ends everything.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource  # noqa: F401 - wait4 imports it, and it may be unreadable after root is dropped
import select
import signal
import socket
import sys
import time

TYPE_CHECKING = False  # typing and dataclasses would double its memory
if TYPE_CHECKING:
    from typing import Any

    from reward_server.sandbox.inside import (
        artifacts,
        box_launchers,
        deadline,
        fd_channel,
        namespaces,
        run_observation,
        slot_setup,
    )
else:
    sys.path.insert(0, os.path.dirname(__file__))  # which -I leaves out
    import artifacts
    import box_launchers
    import deadline
    import fd_channel
    import namespaces
    import run_observation
    import slot_setup

_MESSAGE_BYTES = 1 << 17
_FIRST_FREE = 5  # the box has its streams, the control socket and the filter below


class SlotSupervisor:
    """Runs one box at a time for the server at the other end of the channel."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        config: dict[str, Any] = json.loads(channel.recv(_MESSAGE_BYTES))
        for procs_file in config["cgroup_procs"]:
            with open(procs_file, "w", encoding="utf-8") as file:
                file.write(str(os.getpid()))
        os.sched_setaffinity(0, config["cores"])
        namespaces.become_subreaper()
        if config["stage_root"]:
            slot_setup.stage_folders(config["stage_root"], config["stage"])
            slot_setup.make_devices(config["device_folder"], config["device_numbers"])
            slot_setup.drop_root(config["uid"])
        # Occupy the low numbers: what is received never has a number that a box gives another
        # meaning, so that `dup2` into place cannot overwrite it.
        while os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC) < _FIRST_FREE:
            pass
        has_zygote = config["zygote"] is not None
        self._launcher = (
            box_launchers.ZygoteLauncher(config)
            if has_zygote
            else box_launchers.ColdLauncher(config)
        )
        channel.send(b"ready")

    def serve(self) -> None:
        """Run boxes until the server hangs up."""
        while True:
            text, fds = fd_channel.receive(self._channel, _MESSAGE_BYTES, 3)
            if not text:
                return
            if text == b"kill":  # late: that run has ended by itself
                continue
            observation, opened = self._run(json.loads(text), fds)
            try:
                socket.send_fds(self._channel, [observation.to_json()], opened)
            except BrokenPipeError:
                return
            for fd in opened:
                os.close(fd)

    def _run(
        self, request: dict[str, Any], fds: list[int]
    ) -> tuple[run_observation.RunObservation, list[int]]:
        os.sched_setaffinity(0, request["cores"])  # a wide program has its neighbours' cores too
        observation = run_observation.RunObservation()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            box = self._launcher.start(request, [*fds, theirs.fileno()])
        except OSError as error:
            os.write(fds[2], f"slot supervisor: {error}\n".encode())
            return observation, []
        finally:
            theirs.close()
            for fd in fds:
                os.close(fd)
        with ours:
            folders = self._watch(box, ours, request, observation)
        os.close(box)
        self._launcher.reap(observation)
        observation.end_ns = time.monotonic_ns()
        launched = observation.launched
        opened = artifacts.collect(folders, request, observation) if launched else []
        for folder in folders:
            os.close(folder)
        return observation, opened

    def _watch(
        self,
        box: int,
        control: socket.socket,
        request: dict[str, Any],
        observation: run_observation.RunObservation,
    ) -> list[int]:
        """Wait until the box ends or is killed; return descriptors of its writable folders."""
        poll = select.poll()
        for source in (box, control.fileno(), self._channel.fileno()):
            poll.register(source, select.POLLIN)
        folders: list[int] = []
        limit = deadline.Deadline(request["boot_seconds"])
        while True:
            ready = {source for source, _ in poll.poll(1000 * limit.seconds_left)}
            if control.fileno() in ready:
                folders += observation.note_launch(control)
                poll.unregister(control.fileno())
                # After a failed launch the start is 0: the time is up, and the box is killed.
                limit.limit_program(observation.start_ns, request["wall_seconds"])
            if box in ready:
                return folders
            if self._channel.fileno() in ready:
                observation.interrupted = True
                _kill(box)
                return folders
            if not ready and limit.kill_if_over(observation, lambda: _kill(box)):
                return folders


def _kill(box: int) -> None:
    """Kill a box by its pidfd, which never means another process, unlike a reused process id."""
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(box, signal.SIGKILL)


if __name__ == "__main__":
    os.set_inheritable(int(sys.argv[1]), False)  # noqa: FBT003 - the name of the function says it
    SlotSupervisor(socket.socket(fileno=int(sys.argv[1]))).serve()
