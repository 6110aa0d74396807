"""Leaks to plant in files: importing this module adds them to the suite."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import os
import zipfile
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from tests.integration.tasks.leaks.planted_columns import content, plant
from tests.integration.tasks.leaks.prepared_tasks import (
    NOMAD,
    PIZZA,
    PLANTS,
    SPOOKY,
    TWEETS,
    Prepared,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


# Files beside the tables.
def zipped(name: str, data: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, data)
    return file.getvalue()


def private(data: Prepared) -> bytes:
    return data.answers.read_bytes()


def labels_by_id(data: Prepared) -> dict[str, str]:
    return dict(zip(data.test[data.target.id_column], map(str, data.label), strict=True))


content("a copy of the answers", SPOOKY, "notes.txt", private)
content("packed answers", PIZZA, "more.csv.gz", lambda d: gzip.compress(private(d)))
content("answers in an archive", NOMAD, "old.zip", lambda d: zipped("old/notes.txt", private(d)))
content("labels by id", PIZZA, "index.json", lambda d: json.dumps(labels_by_id(d)).encode())
content(
    "labels by id in lines",
    SPOOKY,
    "log",
    lambda d: "\n".join(f"row {i} -> {x};" for i, x in labels_by_id(d).items()).encode(),
)
content(
    "numbers by id",
    NOMAD,
    "cache.tsv",
    lambda d: "\n".join(f"{i}\t{x}" for i, x in labels_by_id(d).items()).encode(),
)
content("a list of labels", PIZZA, "x.txt", lambda d: "\n".join(d.label).encode())
content("a line of labels", PIZZA, "x.txt", lambda d: "".join(d.label).encode())
content("bits", PIZZA, "x.bin", lambda d: np.packbits(d.label.astype(int)).tobytes())
content("floats", NOMAD, "x.bin", lambda d: d.label.to_numpy(np.float32).tobytes())
content(
    "ids of one label",
    PIZZA,
    "description.md",
    lambda d: "\n".join(d.test["request_id"][d.is_positive]).encode(),
)
content("texts in order", TWEETS, "x.txt", lambda d: "\n".join(d.label).encode())
content("classes of images", PLANTS, "labels.csv", lambda d: d.truth.to_csv(index=False).encode())


@plant("an array", NOMAD, "cache.npy")
def _(data: Prepared) -> None:
    np.save(
        data.public / "cache.npy", data.truth[list(data.target.columns)].astype(float).to_numpy()
    )


@plant("another table in the packed test file", PIZZA, "test.zip!test.json")
def _(data: Prepared) -> None:
    records = data.test.assign(flair=data.label.map({"0": None, "1": "shroom"})).to_dict("records")
    (data.public / "test.zip").write_bytes(zipped("test.json", json.dumps(records).encode()))


@plant("answers in an archive in an archive", SPOOKY, "a.zip!b.zip!c.bz2!c")
def _(data: Prepared) -> None:
    inner = zipped("c.bz2", bz2.compress(private(data)))
    (data.public / "a.zip").write_bytes(zipped("b.zip", inner))


# Files that belong to rows.
def for_images(name: str, place: str = "images/*.jpg") -> Callable[[Callable[..., None]], None]:
    """Add a planting that changes the file of each test row by its class."""

    def add(change: Callable[..., None]) -> None:
        def sow(data: Prepared) -> None:
            for number, label in enumerate(data.label):
                change(data.public / "images" / f"Test_{number}.jpg", label)

        plant(name, PLANTS, place)(sow)

    return add


@for_images("sizes of files")
def _(path: Path, label: str) -> None:
    with path.open("ab") as file:
        file.write(b"\0" * {"healthy": 0, "rust": 40, "scab": 2000}[label])


@for_images("dates of files")
def _(path: Path, label: str) -> None:
    os.utime(path, (0, {"healthy": 1e9, "rust": 1e9 + 60, "scab": 1e9 + 300}[label]))


@for_images("comments in images")
def _(path: Path, label: str) -> None:
    with Image.open(path) as image:
        image.load()
    image.save(path, quality=80, comment=f"shot {label[0]} {hash(label) % 7}")


@for_images("cameras of images")
def _(path: Path, label: str) -> None:
    with Image.open(path) as image:
        image.load()
    exif = Image.Exif()
    exif[0x0110] = {"healthy": "A", "rust": "B", "scab": "C"}[label]
    image.save(path, quality=80, exif=exif)


@for_images("qualities of images")
def _(path: Path, label: str) -> None:
    with Image.open(path) as image:
        image.load()
    image.save(path, quality=81 if label == "rust" else 80)


@for_images("folders of images", place="images/?/*.jpg")
def _(path: Path, label: str) -> None:
    (path.parent / label).mkdir(exist_ok=True)
    path.rename(path.parent / label / path.name)


@for_images("names of images")
def _(path: Path, label: str) -> None:
    path.rename(path.with_name(f"{path.stem}_{label[0]}.jpg"))


@plant("comments in geometries", NOMAD, "test/*/geometry.xyz")
def _(data: Prepared) -> None:
    for number, label in enumerate(data.label, start=1):
        path = data.public / f"test/{number}/geometry.xyz"
        path.write_text(f"# relaxed, {label} eV\n" + path.read_text())


@plant("sizes of geometries", NOMAD, "test/*/geometry.xyz")
def _(data: Prepared) -> None:
    for number, label in enumerate(data.label, start=1):
        path = data.public / f"test/{number}/geometry.xyz"
        path.write_bytes(path.read_bytes().ljust(12_000 + int(1000 * label), b"\n"))
