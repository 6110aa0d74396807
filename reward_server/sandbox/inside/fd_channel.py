"""Messages with file descriptors over a Unix socket."""

from __future__ import annotations

import socket


def receive(channel: socket.socket, most_bytes: int, most_fds: int) -> tuple[bytes, list[int]]:
    """Receive one message and its descriptors, none of which a child inherits.

    `socket.recv_fds` does not set close-on-exec: a box started at the same moment would inherit
    what is meant for another.
    """
    ancillary_bytes = socket.CMSG_SPACE(most_fds * 4)
    text, ancillary, _, _ = channel.recvmsg(most_bytes, ancillary_bytes, socket.MSG_CMSG_CLOEXEC)
    fds: list[int] = []
    for _level, _kind, data in ancillary:
        fds += memoryview(data[: len(data) // 4 * 4]).cast("i")
    return text, fds
