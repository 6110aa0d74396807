"""Opens what a dead box has left: its submission and the files that were asked for.

The program chose every name in these folders, so no path is ever resolved. Each part is opened
relative to a descriptor with `O_NOFOLLOW` and `O_PATH`, which touches nothing (an `open` of a
FIFO would block), checked, and reopened through `/proc/self/fd`, where no name can be swapped
between check and use.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from reward_server.sandbox.inside.run_observation import RunObservation


def collect(folders: list[int], request: dict[str, Any], observation: RunObservation) -> list[int]:
    """Note what the dead box has left and open what was asked for; the artifact comes first."""
    for folder in folders:
        space = os.fstatvfs(folder)
        is_full = space.f_bavail == 0 or space.f_favail == 0
        observation.disk_full = observation.disk_full or is_full
    os.chmod(f"/proc/self/fd/{folders[0]}", 0o700)  # the program may have made it unreadable
    observation.artifact_status, artifact = "not_requested", None
    bytes_left = request["artifact_bytes"]
    if request["artifact"] is not None:
        found = open_artifact(folders[0], request["artifact"], bytes_left)
        observation.artifact_status, artifact = found
    opened = [] if artifact is None else [artifact]
    for path in request["fetch"]:
        status, file = open_below(folders[0], path, bytes_left)
        observation.file_statuses.append(status)
        if file is not None:
            bytes_left -= os.fstat(file).st_size
            opened.append(file)
    return opened


def open_below(folder: int, path: str, most_bytes: int) -> tuple[str, int | None]:
    """Open one regular file of a dead box in a folder below its work directory."""
    *parents, name = path.split("/")
    opened: list[int] = []
    try:
        for parent in parents:
            flags = os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
            folder = os.open(parent, flags, dir_fd=folder)
            opened.append(folder)
            os.chmod(f"/proc/self/fd/{folder}", 0o700)
        return open_artifact(folder, name, most_bytes)
    except FileNotFoundError:
        return "absent", None
    except OSError:
        return "refused", None
    finally:
        for descriptor in opened:
            os.close(descriptor)


def open_artifact(folder: int, name: str, most_bytes: int) -> tuple[str, int | None]:
    """Open one regular file of a dead box, following no link."""
    try:
        handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return "absent", None
    except OSError:
        return "refused", None
    try:
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode) or info.st_nlink != 1 or info.st_size > most_bytes:
            return "refused", None
        path = f"/proc/self/fd/{handle}"
        if not info.st_mode & stat.S_IRUSR:
            os.chmod(path, 0o600)
        return "file", os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return "refused", None
    finally:
        os.close(handle)
