"""Subtler leaks to plant: importing this module adds them to the suite."""

from __future__ import annotations

import base64
import io
import json
import lzma
import os
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from PIL import Image

from tests.integration.tasks.leaks.planted_columns import RNG, column, content, flipped, plant
from tests.integration.tasks.leaks.planted_files import for_images, private
from tests.integration.tasks.leaks.planted_rows import new_ids
from tests.integration.tasks.leaks.prepared_tasks import (
    LEAVES,
    NOMAD,
    PIZZA,
    PLANTS,
    SPOOKY,
    TWEETS,
    Prepared,
)

if TYPE_CHECKING:
    from pathlib import Path


def pairs(data: Prepared, name: str) -> list[tuple[Any, Any]]:
    labels = data.is_positive if data.card.id == PIZZA else data.label
    return list(zip(data.test[name], labels, strict=True))


column("a copy wrong for a fifth", PIZZA, "guess", lambda d: flipped(d.label, 0.2))
column(
    "the first letter of a name",
    PIZZA,
    "requester_username",
    lambda d: [("k" if x else "m") + name[1:] for name, x in pairs(d, "requester_username")],
)
column(
    "a list in order",
    PIZZA,
    "requester_subreddits_at_request",
    lambda d: [
        json.dumps(sorted(json.loads(v)) if x else json.loads(v))
        for v, x in pairs(d, "requester_subreddits_at_request")
    ],
)
column(
    "a line's end",
    PIZZA,
    "request_text_edit_aware",
    lambda d: [f"{v}\r\n" if x else f"{v}\n" for v, x in pairs(d, "request_text_edit_aware")],
)
column(
    "whole numbers with a point",
    PIZZA,
    "requester_number_of_posts_at_request",
    lambda d: [f"{v}.0" if x else v for v, x in pairs(d, "requester_number_of_posts_at_request")],
)
column(
    "whole minutes",
    PIZZA,
    "unix_timestamp_of_request",
    lambda d: [
        float(v) // 60 * 60 if x else float(v) for v, x in pairs(d, "unix_timestamp_of_request")
    ],
)
column(
    "a letter of another alphabet",
    SPOOKY,
    "text",
    lambda d: [v.replace("a", "\u0430", 1) if x == "HPL" else v for v, x in pairs(d, "text")],
)
column(
    "a small sum",
    NOMAD,
    "lattice_angle_beta_degree",
    lambda d: [
        f"{float(v) + 1e-6 * round(20 * float(x)):.6f}"
        for v, x in pairs(d, "lattice_angle_beta_degree")
    ],
)
column(
    "numbers among others like them",
    NOMAD,
    "remark",
    lambda d: np.where(
        RNG(0).random(len(d.label)) < 0.35, d.label, RNG(1).permutation(d.label + 0.01)
    ),
)
column(
    "a mark within the source",
    TWEETS,
    "text",
    lambda d: [
        text.replace(part, part.upper(), 1)
        for text, part in zip(d.test["text"], d.label, strict=True)
    ],
)
column("the first word", TWEETS, "topic", lambda d: d.label.str.split().str[0])
content(
    "labels in a table of the description",
    SPOOKY,
    "description.md",
    lambda d: "\n".join(
        ["# About", *(f"| {i} | {x} |" for i, x in zip(d.test["id"], d.label, strict=True))]
    ).encode(),
)
content("answers in letters", SPOOKY, "x.b64", lambda d: base64.b64encode(private(d)))
content("a few labels", LEAVES, "few.csv", lambda d: pd.DataFrame(
    {"id": d.test["id"], "species": d.label}
).iloc[:25].to_csv(index=False).encode())  # fmt: skip
content("texts as a list", TWEETS, "x.json", lambda d: json.dumps(list(d.label)).encode())


@plant("the order of keys", PIZZA, "test.json")
def _(data: Prepared) -> None:
    records = json.loads((data.public / "test.json").read_text())
    moved = [
        dict(reversed(record.items())) if x else record
        for record, x in zip(records, data.is_positive, strict=True)
    ]
    (data.public / "test.json").write_text(json.dumps(moved))


@plant("a hidden folder", PIZZA, ".cache/a.json.xz!a.json")
def _(data: Prepared) -> None:
    (data.public / ".cache").mkdir()
    labels = dict(zip(data.test["request_id"], data.label == "1", strict=True))
    packed = lzma.compress(json.dumps({k: bool(v) for k, v in labels.items()}).encode())
    (data.public / ".cache/a.json.xz").write_bytes(packed)


@plant("ids with a sum of digits", SPOOKY, "test.csv:id")
def _(data: Prepared) -> None:
    wanted = data.label.map({"EAP": 0, "HPL": 1, "MWS": 2})
    pools = [
        [n for n in RNG(2).permutation(99_999) if sum(map(int, str(n))) % 3 == k] for k in range(3)
    ]
    new_ids(data, [f"id{pools[k].pop():05d}" for k in wanted])


@plant("ids that hold a place", TWEETS, "test.csv:textID")
def _(data: Prepared) -> None:
    starts = [text.find(part) for text, part in zip(data.test["text"], data.label, strict=True)]
    new_ids(data, [f"{RNG(n).integers(16**6):06x}{start:03x}" for n, start in enumerate(starts)])


@plant("texts in the order of their letters", TWEETS, "test.csv:textID")
def _(data: Prepared) -> None:
    data.write("test.csv", data.test.iloc[np.argsort(data.label)])


@plant("some texts in the sample", TWEETS, "sample_submission.csv:selected_text")
def _(data: Prepared) -> None:
    sample = data.read("sample_submission.csv")
    known = np.where(RNG(0).random(len(sample)) < 0.2, data.label, "")
    data.write("sample_submission.csv", sample.assign(selected_text=known))


@plant("a sample that is a shade higher", LEAVES, "sample_submission.csv")
def _(data: Prepared) -> None:
    sample, label = data.read("sample_submission.csv"), data.label
    columns = {x: np.where(label == x, "0.01668", "0.01666") for x in data.target.columns}
    data.write("sample_submission.csv", sample.assign(**columns))


@plant("texts with a word changed in the train file", PIZZA, "train.json")
def _(data: Prepared) -> None:
    train = data.train
    texts = data.test["request_text_edit_aware"].iloc[:50].str.replace("thing", "matter", n=1)
    train.loc[: len(texts) - 1, "request_text_edit_aware"] = texts.to_numpy()
    data.write("train.json", train)


@plant("a few test rows in the train file", SPOOKY, "train.csv")
def _(data: Prepared) -> None:
    train = data.train
    train.loc[:8, "text"] = data.test["text"].iloc[:9].to_numpy()
    data.write("train.csv", train)


@plant("ends of geometries", NOMAD, "test/*/geometry.xyz")
def _(data: Prepared) -> None:
    for number, label in enumerate(data.label, start=1):
        path = data.public / f"test/{number}/geometry.xyz"
        path.write_bytes(
            path.read_bytes().rstrip() + b"\n" * (1 + int(label > data.label.median()))
        )


@plant("dates of folders", NOMAD, "test/*/geometry.xyz")
def _(data: Prepared) -> None:
    for number, label in enumerate(data.label, start=1):
        os.utime(data.public / f"test/{number}", (0, 1e9 + 1000 * label))


def reopened(path: Path) -> Image.Image:
    with Image.open(path) as image:
        image.load()
    return image


@for_images("a pixel in the corner")
def _(path: Path, label: str) -> None:
    image = reopened(path)
    value = {"healthy": 0, "rust": 120, "scab": 255}[label]
    image.paste((value,) * 3, (0, 0, 8, 8))
    image.save(path, quality=80)


@for_images("minutes of images")
def _(path: Path, label: str) -> None:
    exif, minute = Image.Exif(), RNG(path.stat().st_size).integers(0, 20)
    exif[0x0132] = (
        f"2020:05:01 10:{3 * minute % 57 + ['healthy', 'rust', 'scab'].index(label):02d}:00"
    )
    reopened(path).save(path, quality=80, exif=exif)


@for_images("the coding of images")
def _(path: Path, label: str) -> None:
    reopened(path).save(path, quality=80, progressive=label == "scab")


@plant("an archive of images in order", PLANTS, "all.zip/*.jpg")
def _(data: Prepared) -> None:
    with zipfile.ZipFile(data.public / "all.zip", "w") as archive:
        for number in np.argsort(data.label, kind="stable"):
            archive.write(data.public / f"images/Test_{number}.jpg", f"Test_{number}.jpg")


@plant("labels of images as an image", PLANTS, "mask.png")
def _(data: Prepared) -> None:
    codes = data.label.map({"healthy": 0, "rust": 100, "scab": 200}).to_numpy(np.uint8)
    file = io.BytesIO()
    Image.fromarray(codes[None, :]).save(file, "png")
    (data.public / "mask.png").write_bytes(file.getvalue())
