"""What a slot supervisor started by root does before its first box: mounts, then no more root."""

from __future__ import annotations

import contextlib
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from reward_server.sandbox.inside import namespaces
else:
    import namespaces


def stage_folders(root: str, sources: dict[str, str]) -> None:
    """Bind host folders below `root`, where an unprivileged `bwrap` can reach them.

    The interpreter may lie below a 0700 home, which the slot's account cannot enter; a bind mount
    needs no permission on the folders above its source. The mounts live in a mount namespace of
    this process: "slave" lets the host's later mounts in and none of these out, and the kernel
    removes them with the process, however it dies.
    """
    namespaces.unshare(namespaces.MOUNTS)
    with contextlib.suppress(OSError):  # /proc/self/ns/time would be one inode for all boxes
        namespaces.unshare(namespaces.TIME)
    namespaces.mount(None, "/", None, namespaces.RECURSIVE | namespaces.SLAVE)
    namespaces.mount("tmpfs", root, "tmpfs", 0, "mode=755,size=64k")
    for name, source in sources.items():
        os.mkdir(f"{root}/{name}", 0o755)
        with contextlib.suppress(FileNotFoundError):  # a task that was removed meanwhile
            namespaces.mount(source, f"{root}/{name}", None, namespaces.BIND)


def make_devices(folder: str, device_numbers: dict[str, list[int]]) -> None:
    """Make device nodes of the slot's own: boxes could lock and watch the machine's as a channel.

    The mount becomes read-only, so that no program leaves even a timestamp for the next one.
    """
    os.mkdir(folder, 0o755)
    namespaces.mount("tmpfs", folder, "tmpfs", 0, "mode=755,size=4k")
    with contextlib.suppress(PermissionError):  # root of a container, not of the machine
        for name, numbers in device_numbers.items():
            os.mknod(f"{folder}/{name}", stat.S_IFCHR, os.makedev(*numbers))
            os.chmod(f"{folder}/{name}", 0o666)  # noqa: S103 - as on every machine
    flags = namespaces.REMOUNT | namespaces.BIND | namespaces.READ_ONLY
    namespaces.mount(None, folder, None, flags | namespaces.NO_SUID | namespaces.NO_EXEC)


def drop_root(uid: int) -> None:
    """Become the slot's unprivileged account for good.

    The order matters: groups and the group id can only be changed while still root. All three
    user ids change, so that no saved id leads back.
    """
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    # After a change of account the kernel clears "dumpable", and /proc/self belongs to root then.
    namespaces.set_dumpable(True)
