"""What containers are laid over: one volume with the warden's code and an empty folder.

No two containers share a file. A file that two can see is a channel, even where neither may write:
one locks or opens it, the other notices. So every container sees the warden's code and its public
data through an overlay of its own, an anonymous volume that goes when the container goes. An
overlay without a writable layer needs two folders below it: the second is the empty one.
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

from reward_server.sandbox.bubblewrap.command import INSIDE
from reward_server.sandbox.docker.container_config import LABEL, VOLUME_LABEL

_INSIDE = Path(__file__).parents[1] / "inside"
_KEEPER = Path(__file__).parents[1] / "slot_supervisor.py"
_NAME = "reward-server-inside-"
_CODE, _EMPTY = "code/", "empty/"


@dataclass(frozen=True, slots=True)
class Layers:
    """Where the engine finds, on its own side, what it lays containers over."""

    volume: str
    code: str
    empty: str


def place(api: Any, image: str) -> Layers:  # noqa: ANN401 - the library has no types
    """Have a volume with the warden's code, whose name tells its content."""
    files = {f"{_CODE}{name}": content for name, content in _read_inside().items()}
    content = {_CODE: b"", _EMPTY: b"", **files}
    name = f"{_NAME}{_digest(content)}"
    _fill(api, image, name, content)
    folder = str(api.inspect_volume(name)["Mountpoint"])
    return Layers(name, f"{folder}/{_CODE[:-1]}", f"{folder}/{_EMPTY[:-1]}")


def _read_inside() -> dict[str, bytes]:
    paths = [*sorted(_INSIDE.glob("*.py")), _KEEPER]
    return {path.name: path.read_bytes() for path in paths}


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
        "Entrypoint": ["/nonexistent"],  # it is a way to the volume and never started
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


def remove_others(api: Any, layers: Layers) -> list[str]:  # noqa: ANN401
    """Remove the code of other versions that no container is laid over.

    A server of another version that has no container just now makes its volume anew.
    """
    removed = []
    for volume in api.volumes(filters={"label": f"{LABEL}=inside"})["Volumes"] or ():
        name = volume["Name"]
        wanted = {"label": f"{VOLUME_LABEL}={name}"}
        if name != layers.volume and not api.containers(all=True, filters=wanted):
            with contextlib.suppress(errors.APIError):  # in use, or gone
                api.remove_volume(name)
                removed.append(name)
    return removed


def remove_stale(api: Any, now: datetime, older_than_seconds: float) -> list[str]:  # noqa: ANN401
    """Remove overlays whose containers somebody has removed without them."""
    removed = []
    left = api.volumes(filters={"label": LABEL, "dangling": True})["Volumes"] or ()
    for volume in left:
        age_seconds = (now - datetime.fromisoformat(volume["CreatedAt"])).total_seconds()
        is_overlay = volume["Labels"][LABEL] != "inside"
        if is_overlay and age_seconds >= older_than_seconds:
            with contextlib.suppress(errors.APIError):  # in use, or gone
                api.remove_volume(volume["Name"])
                removed.append(volume["Name"])
    return removed
