"""The volume below the containers' overlays: the box scripts and an empty folder.

No two containers share an inode. A file that two can see is a channel, even where neither may
write: one locks or opens it, the other notices. So every container sees the scripts and its public
data through an overlay of its own, an anonymous volume that is removed with the container. An
overlay without a writable layer needs two lower folders: the second is the empty one.

The scripts reach the volume as an uncompressed archive (CVE-2026-41567 is about compressed ones),
by way of a container that is never started, so that nothing can swap a path while the engine
unpacks (CVE-2026-42306). The volume is read back and compared before and after: its name is a
digest of the content, but another server may have died half-way through filling it.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import tarfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from docker import errors

from reward_server.sandbox.docker.container_config import LABEL, VOLUME_LABEL
from reward_server.sandbox.payload import INSIDE

_INSIDE = Path(__file__).parents[1] / "inside"
_NAME = "reward-server-inside-"
_CODE, _EMPTY = "code/", "empty/"


@dataclass(frozen=True, slots=True)
class Layers:
    """Where the engine finds, on its own side, the lower folders of the overlays."""

    volume: str
    code: str
    empty: str


def install_scripts(api: Any, image: str) -> Layers:  # noqa: ANN401 - the library has no types
    """Make a volume with the box scripts, whose name is a digest of its content."""
    files = {f"{_CODE}{name}": content for name, content in _read_scripts().items()}
    content = {_CODE: b"", _EMPTY: b"", **files}
    name = f"{_NAME}{_digest(content)}"
    _fill(api, image, name, content)
    folder = str(api.inspect_volume(name)["Mountpoint"])
    return Layers(name, f"{folder}/{_CODE[:-1]}", f"{folder}/{_EMPTY[:-1]}")


def _read_scripts() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(_INSIDE.glob("*.py"))}


def _digest(files: dict[str, bytes]) -> str:
    total = hashlib.sha256()
    for name, content in files.items():
        total.update(f"{name} {len(content)}\n".encode() + content)
    return total.hexdigest()[:16]


def _fill(api: Any, image: str, name: str, files: dict[str, bytes]) -> None:  # noqa: ANN401
    api.create_volume(name, labels={LABEL: "inside"})
    mount = {"Type": "volume", "Source": name, "Target": INSIDE, "VolumeOptions": {"NoCopy": True}}
    config = {
        "Image": image,
        "Entrypoint": ["/nonexistent"],  # only a way into the volume, never started
        "Labels": {LABEL: "inside"},
        "HostConfig": {"Mounts": [mount], "NetworkMode": "none"},
    }
    container = api.create_container_from_config(config)["Id"]
    try:
        if _read(api, container) != files:
            api.put_archive(container, INSIDE, pack(files))
        if _read(api, container) != files:
            message = f"the volume {name} does not hold what was put there"
            raise errors.DockerException(message)
    finally:
        api.remove_container(container, v=False, force=True)


def pack(files: dict[str, bytes]) -> bytes:
    """Return a plain archive of files, and of folders, whose names end in a slash."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            is_folder = name.endswith("/")
            entry.type = tarfile.DIRTYPE if is_folder else tarfile.REGTYPE
            entry.size, entry.mode = len(content), 0o555 if is_folder else 0o444
            tar.addfile(entry, io.BytesIO(content))
    return archive.getvalue()


def _read(api: Any, container: str) -> dict[str, bytes]:  # noqa: ANN401
    chunks, _ = api.get_archive(container, INSIDE)
    found = {}
    with tarfile.open(fileobj=io.BytesIO(b"".join(chunks)), mode="r:") as tar:
        for entry in tar:
            name = entry.name.partition("/")[2] + "/" * entry.isdir()
            file = tar.extractfile(entry)
            if name != "/":
                found[name] = b"" if file is None else file.read()
    return found


def remove_other_versions(api: Any, layers: Layers) -> list[str]:  # noqa: ANN401
    """Remove the scripts of other versions that no container uses.

    A server of another version that has no container just now makes its volume again.
    """
    removed = []
    for volume in api.volumes(filters={"label": f"{LABEL}=inside"})["Volumes"] or ():
        name = volume["Name"]
        wanted = {"label": f"{VOLUME_LABEL}={name}"}
        if name != layers.volume and not api.containers(all=True, filters=wanted):
            with contextlib.suppress(errors.APIError):  # in use, or already removed
                api.remove_volume(name)
                removed.append(name)
    return removed


def remove_stale(api: Any, now: datetime, older_than_seconds: float) -> list[str]:  # noqa: ANN401
    """Remove overlays whose containers were removed without them."""
    removed = []
    left = api.volumes(filters={"label": LABEL, "dangling": True})["Volumes"] or ()
    for volume in left:
        age_seconds = (now - datetime.fromisoformat(volume["CreatedAt"])).total_seconds()
        is_overlay = volume["Labels"][LABEL] != "inside"
        if is_overlay and age_seconds >= older_than_seconds:
            with contextlib.suppress(errors.APIError):  # in use, or already removed
                api.remove_volume(volume["Name"])
                removed.append(volume["Name"])
    return removed
