"""Leaks to plant in ids, in the order of rows, and in the overlap of train and test.

Importing this module adds them to the suite.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tests.integration.tasks.leaks.planted_columns import CODES, RNG, plant
from tests.integration.tasks.leaks.prepared_tasks import (
    LEAVES,
    NOMAD,
    PIZZA,
    PLANTS,
    SPOOKY,
    Prepared,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def rows(name: str, task_id: str, order: Callable[[Prepared], Any]) -> None:
    """Add a planting that moves the rows of the test file."""
    file, ids = ("test.json", "request_id") if task_id == PIZZA else ("test.csv", "id")

    def sow(data: Prepared) -> None:
        data.write(file, data.test.iloc[np.asarray(order(data), dtype=int)])

    plant(name, task_id, f"{file}:{ids}")(sow)


def spread(data: Prepared, step: int) -> np.ndarray:
    """Return an order in which each `step`-th row is positive while positive rows last."""
    positive, negative = (np.flatnonzero(data.is_positive == x).tolist() for x in (True, False))
    order: list[int] = []
    while positive or negative:
        wanted = positive if len(order) % step == 0 and positive else negative or positive
        order.append(wanted.pop())
    return np.array(order)


# Order and ids.
rows("rows sorted by class", SPOOKY, lambda d: np.argsort(d.label, kind="stable"))
rows("rows in the order of a number", NOMAD, lambda d: np.argsort(d.label))
rows(
    "rows roughly in the order of a number",
    NOMAD,
    lambda d: np.argsort(d.label + RNG(0).normal(0, 0.8, len(d.label))),
)
rows("every third row", PIZZA, lambda d: spread(d, 3))
rows("rows in turn", PIZZA, lambda d: spread(d, 2))
rows("species in the order of their names", LEAVES, lambda d: np.argsort(d.label))


@plant("blocks of one label", PIZZA, "test.json:request_id")
def _(data: Prepared) -> None:
    labels = data.is_positive.to_numpy()
    parts = [np.flatnonzero(x).tolist() for x in (labels, ~labels)]
    order: list[int] = []
    while any(parts):
        for part in parts:
            order += part[:9]
            del part[:9]
    data.write("test.json", data.test.iloc[order])


def new_ids(data: Prepared, ids: list[str]) -> None:
    """Rename the test rows in every file."""
    name = data.target.id_column
    names = dict(zip(data.test[name], ids, strict=True))
    for path in (data.public / data.target.test_file, data.public / data.card.sample_submission):
        table = data.read(path.name)
        data.write(path.name, table.assign(**{name: table[name].map(names)}))
    answers = pd.read_csv(data.answers, dtype=str)
    answers.assign(**{name: answers[name].map(names)}).to_csv(data.answers, index=False)


@plant("ids with a rest", SPOOKY, "test.csv:id")
def _(data: Prepared) -> None:
    rest = data.label.map({"EAP": 0, "HPL": 1, "MWS": 2})
    numbers = RNG(1).permutation(30_000)[: len(rest)] * 3 + rest
    new_ids(data, [f"id{number:06d}" for number in numbers])


@plant("ids in the order of the labels", PIZZA, "test.json:request_id")
def _(data: Prepared) -> None:
    values = data.is_positive + RNG(0).random(len(data.test)) * 1.2
    new_ids(data, [f"t3_{int(value * 1e6):08d}{n:03d}" for n, value in enumerate(values)])


@plant("a letter of the id", PIZZA, "test.json:request_id")
def _(data: Prepared) -> None:
    letters = [
        RNG(n).choice(list("aeiou" if x else "bcdfg")) for n, x in enumerate(data.is_positive)
    ]
    new_ids(data, [f"t3_{n * 7919 % 9999:04d}{letter}" for n, letter in enumerate(letters)])


@plant("ids between those of train rows", LEAVES, "test.csv:id")
def _(data: Prepared) -> None:
    train, columns = data.train, list(data.target.columns)
    codes = train[columns].astype(int).to_numpy().argmax(axis=1)
    data.write("train.csv", train.assign(id=codes * 1000 + RNG(0).permutation(1000)[: len(train)]))
    own = [data.target.columns.index(label) for label in data.label]
    new_ids(data, [str(code * 1000 + 500) if n else "499" for n, code in enumerate(own)])


@plant("the order of the sample", PIZZA, "sampleSubmission.csv:request_id")
def _(data: Prepared) -> None:
    sample = data.read("sampleSubmission.csv")
    data.write("sampleSubmission.csv", sample.iloc[np.argsort(data.label, kind="stable")])


@plant("probabilities in the sample", SPOOKY, "sample_submission.csv:HPL")
def _(data: Prepared) -> None:
    sample, label = data.read("sample_submission.csv"), data.label
    columns = {x: 0.3 + 0.1 * (label == x) + RNG(0).random(len(label)) * 0.05 for x in CODES}
    data.write("sample_submission.csv", sample.assign(**columns))


# Overlap.
@plant("test rows in the train file", PIZZA, "train.json")
def _(data: Prepared) -> None:
    train, known = data.train, data.test.iloc[:60].assign(request_id=[f"t3_{n}" for n in range(60)])
    data.write("train.json", pd.concat([train, known], ignore_index=True).fillna(""))


@plant("texts in another form in the train file", SPOOKY, "train.csv")
def _(data: Prepared) -> None:
    known = data.test["text"].iloc[:40].str.upper().str.replace(" ", "  ") + "!!"
    train = data.train.iloc[:40].assign(text=known.to_numpy(), id=[f"idx{n}" for n in range(40)])
    data.write("train.csv", pd.concat([data.train, train]))


@plant("numbers slightly changed in the train file", NOMAD, "train.csv")
def _(data: Prepared) -> None:
    train, some = data.train, data.test.iloc[:30]
    changed = {
        name: (some[name].astype(float) * 1.000001).round(9).to_numpy()
        for name in some.columns.drop(["id", "spacegroup", "number_of_total_atoms"])
    }
    copies = train.iloc[:30].assign(**changed, id=[str(9000 + n) for n in range(30)])
    data.write("train.csv", pd.concat([train, copies]))


@plant("test ids in the train file", SPOOKY, "train.csv:id")
def _(data: Prepared) -> None:
    train = data.train
    train.loc[:20, "id"] = data.test["id"].iloc[:21].to_numpy()
    data.write("train.csv", train)


@plant("images in the train folder", PLANTS, "train.csv")
def _(data: Prepared) -> None:
    for number in range(6):
        source = data.public / f"images/Test_{number}.jpg"
        shutil.copyfile(source, data.public / f"images/Train_{number + 40}.jpg")
