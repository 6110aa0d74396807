"""What stands around the content of a file: comments, metadata, coding, what follows its end.

`hidden` has no business to be related to a label. `shown` may well be: the size of a file, the
corners of a picture, a comment about the content.
"""

from __future__ import annotations

import io
import re
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, UnidentifiedImageError

from reward_server.tasks.leaks.items import IMAGES

if TYPE_CHECKING:
    from reward_server.tasks.leaks.items import Item

_MOST_BYTES = 4 << 20
_COMMENT = re.compile(rb"^[ \t]*(?:#|//|;|%|--)(.*)$", re.MULTILINE)
_JPEG_END, _PNG_END = b"\xff\xd9", b"IEND\xaeB`\x82"


@dataclass(frozen=True, slots=True)
class FileMetadata:
    """What is known about a file, as written values by name."""

    shown: dict[str, str]
    hidden: dict[str, str] = field(default_factory=dict)


def describe(item: Item) -> FileMetadata:
    """Describe a file without judging what it holds."""
    size = {"size": str(item.size)}
    data = item.read(_MOST_BYTES)
    if item.suffix in IMAGES:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return _describe_image(data, size)
        except (UnidentifiedImageError, OSError, ValueError, SyntaxError):
            return FileMetadata(size, {"coding": "broken"})
    if b"\0" in data[:1024]:
        return FileMetadata(size)
    comments = [comment.decode("utf-8", "replace") for comment in _COMMENT.findall(data)]
    last = data.rstrip().rpartition(b"\n")[2][-80:].decode("utf-8", "replace")
    space = data[len(data.rstrip()) :]
    forms = repr((space, data[:3].isspace(), b"\r" in data, b" \n" in data, b"\t" in data))
    shown = size | {"comment": " ".join(comments), "last line": last}
    return FileMetadata(shown, {"line ends": forms})


def _describe_image(data: bytes, shown: dict[str, str]) -> FileMetadata:
    with Image.open(io.BytesIO(data)) as image:
        hidden = {
            "coding": f"{image.format} {image.mode} {getattr(image, 'quantization', '')}",
            "components": str(getattr(image, "layer", "")),
        }
        for key, value in image.info.items():
            written = value.decode("latin-1") if isinstance(value, bytes) else str(value)
            hidden[f"metadata {key}"] = written[:2000]
        for tag, value in image.getexif().items():
            hidden[f"metadata {tag}"] = str(value)[:500]
        shown = shown | {"shape": str(image.size), **_corners(image)}
    mark = _JPEG_END if data[:2] == b"\xff\xd8" else _PNG_END
    end = data.rfind(mark)
    hidden["end"] = data[end + len(mark) :][:200].hex() if end >= 0 else "none"
    hidden["end's length"] = str(len(data) - end)
    return FileMetadata(shown, hidden)


def _corners(image: Image.Image) -> dict[str, str]:
    """Return how much brighter each corner is than the picture, decoded as small as can be."""
    image.draft("L", (image.width // 8, image.height // 8))
    pixels = np.asarray(image.convert("L"), dtype=np.float64)
    wide = max(1, pixels.shape[0] // 64)
    places = {"upper left": (0, 0), "upper right": (0, -wide), "lower left": (-wide, 0)}
    places["lower right"] = (-wide, -wide)
    return {
        f"{name} corner": f"{pixels[row:, column:][:wide, :wide].mean() - pixels.mean():.1f}"
        for name, (row, column) in places.items()
    }
