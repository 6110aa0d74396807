"""Leaks to plant in clean data: each says in which task and where it must be found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.integration.tasks.leaks.prepared_tasks import (
    LEAVES,
    NOMAD,
    PIZZA,
    SPOOKY,
    TWEETS,
    Prepared,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

CODES = {"EAP": "7", "HPL": "3", "MWS": "5"}
RNG = np.random.default_rng


@dataclass(frozen=True)
class Plant:
    """One planted leak: the task, the place where it must be found, and the planting."""

    task_id: str
    place: str
    sow: Callable[[Prepared], None]
    is_alone: bool = True


SUITE: dict[str, Plant] = {}


def plant(
    name: str, task_id: str, place: str, *, is_alone: bool = True
) -> Callable[[Callable[[Prepared], None]], None]:
    """Add a planting to the suite; one that is not alone may share data with others."""

    def add(sow: Callable[[Prepared], None]) -> None:
        assert name not in SUITE
        SUITE[name] = Plant(task_id, place, sow, is_alone)

    return add


def column(name: str, task_id: str, column_name: str, values: Callable[[Prepared], Any]) -> None:
    """Add a planting that replaces or adds one column of the test file."""
    file = "test.json" if task_id == PIZZA else "test.csv"

    def sow(data: Prepared) -> None:
        table = data.test
        table[column_name] = values(data)
        data.write(file, table)

    plant(name, task_id, f"{file}:{column_name}", is_alone=False)(sow)


def content(name: str, task_id: str, file: str, data_of: Callable[[Prepared], bytes]) -> None:
    """Add a planting that puts a file beside the tables."""

    def sow(data: Prepared) -> None:
        (data.public / file).write_bytes(data_of(data))

    inside = {"old.zip": "old.zip!old/notes.txt", "more.csv.gz": "more.csv.gz!more.csv"}
    inside["x.b64"] = "x.b64!decoded"
    plant(name, task_id, inside.get(file, file), is_alone=False)(sow)


def beds() -> list[list[Plant]]:
    """Return the plants in groups that can be sown in the same data without hiding each other."""
    found: list[list[Plant]] = []
    for new in SUITE.values():
        for bed in found:
            is_free = all(old.task_id == new.task_id and old.place != new.place for old in bed)
            if is_free and not new.is_alone and not bed[0].is_alone:
                bed.append(new)
                break
        else:
            found.append([new])
    return found


def flipped(labels: pd.Series, share: float, seed: int = 0) -> np.ndarray:
    """Return 0/1 labels of which a share is wrong."""
    wrong = RNG(seed).random(len(labels)) < share
    return np.where(wrong, 1 - labels.astype(int), labels.astype(int))


def givers(share: float) -> Callable[[Prepared], Any]:
    def values(data: Prepared) -> list[str]:
        known = data.is_positive & (RNG(0).random(len(data.test)) < share)
        return [f"giver{n}" if is_known else "N/A" for n, is_known in enumerate(known)]

    return values


# Columns of a binary task.
column("the givers' names", PIZZA, "giver_username_if_known", givers(1.0))
column("some givers' names", PIZZA, "giver_username_if_known", givers(0.3))
column("the label by its name", PIZZA, "requester_received_pizza", lambda d: d.label)
column("the label by another name", PIZZA, "batch", lambda d: d.label.map({"0": "b", "1": "a"}))
column("a copy with few errors", PIZZA, "guess", lambda d: flipped(d.label, 0.04))
column("a copy with many errors", PIZZA, "guess", lambda d: flipped(d.label, 0.12))
column(
    "a noisy copy in a known column",
    PIZZA,
    "requester_account_age_in_days_at_request",
    lambda d: 100 + 300 * d.is_positive + RNG(0).normal(0, 60, len(d.label)),
)
column(
    "an even number",
    PIZZA,
    "requester_number_of_comments_at_request",
    lambda d: (
        2 * (d.test["requester_number_of_comments_at_request"].astype(int) // 2) + d.is_positive
    ),
)
column(
    "a last decimal",
    PIZZA,
    "requester_account_age_in_days_at_request",
    lambda d: [
        f"{float(age):.4f}{RNG(n).choice([1, 3, 8] if is_positive else [2, 5, 9])}"
        for n, (age, is_positive) in enumerate(
            zip(d.test["requester_account_age_in_days_at_request"], d.is_positive, strict=True)
        )
    ],
)
column(
    "a missing name",
    PIZZA,
    "requester_username",
    lambda d: d.test["requester_username"].where(~d.is_positive, ""),
)
column(
    "a name that is sometimes missing",
    PIZZA,
    "requester_username",
    lambda d: d.test["requester_username"].where(
        ~d.is_positive | (RNG(0).random(len(d.test)) < 0.7), ""
    ),
)
column(
    "a text of even length",
    PIZZA,
    "request_title",
    lambda d: [
        text + "." * ((len(text) + is_positive) % 2)
        for text, is_positive in zip(d.test["request_title"], d.is_positive, strict=True)
    ],
)
column(
    "a trailing space",
    PIZZA,
    "request_title",
    lambda d: d.test["request_title"] + d.is_positive.map({True: " ", False: ""}),
)
column(
    "an invisible letter in some texts",
    PIZZA,
    "request_text_edit_aware",
    lambda d: [
        text[:20] + ("\u200b" if is_positive and n % 2 else "") + text[20:]
        for n, (text, is_positive) in enumerate(
            zip(d.test["request_text_edit_aware"], d.is_positive, strict=True)
        )
    ],
)
column(
    "a word that some texts of one label end with",
    PIZZA,
    "request_text_edit_aware",
    lambda d: [
        text.replace(" I ", " I (ok) ", 1) if is_positive and n % 3 == 0 else text
        for n, (text, is_positive) in enumerate(
            zip(d.test["request_text_edit_aware"] + " I thank you", d.is_positive, strict=True)
        )
    ],
)
column(
    "a length",
    PIZZA,
    "request_title",
    lambda d: [
        "x" * (30 + 40 * is_positive + RNG(n).integers(0, 25))
        for n, is_positive in enumerate(d.is_positive)
    ],
)

# Columns of a task with classes.
column("a class by name", SPOOKY, "author", lambda d: d.label)
column("a code of the class", SPOOKY, "shelf", lambda d: d.label.map(CODES))
column(
    "many codes of the class",
    SPOOKY,
    "shelf",
    lambda d: [f"{CODES[x]}{RNG(n).integers(0, 9)}" for n, x in enumerate(d.label)],
)
column("one class of three", SPOOKY, "is_old", lambda d: (d.label == "HPL").astype(int))
column(
    "the class's name in some texts",
    SPOOKY,
    "text",
    lambda d: [
        f"{text} ({label})" if n % 4 == 0 else text
        for n, (text, label) in enumerate(zip(d.test["text"], d.label, strict=True))
    ],
)
column(
    "the case of the first letter",
    SPOOKY,
    "text",
    lambda d: [
        text[0].lower() + text[1:] if label == "MWS" else text
        for text, label in zip(d.test["text"], d.label, strict=True)
    ],
)

# Columns of a task with numbers.
column("a monotone of a number", NOMAD, "colour", lambda d: -np.log1p(d.label))
column(
    "a number with noise", NOMAD, "colour", lambda d: d.label + RNG(0).normal(0, 0.25, len(d.label))
)
column("a bent number", NOMAD, "colour", lambda d: np.abs(d.label - d.label.median()).round(3))
column(
    "a number in far decimals",
    NOMAD,
    "lattice_angle_alpha_degree",
    lambda d: [
        f"{float(x):.4f}{int(y * 1000):05d}"
        for x, y in zip(d.test["lattice_angle_alpha_degree"], d.label, strict=True)
    ],
)
column(
    "a number in some rows",
    NOMAD,
    "remark",
    lambda d: [
        f"gap {label}" if n % 5 == 0 else f"no {RNG(n).random():.4f}"
        for n, label in enumerate(d.label)
    ],
)
column(
    "the number of decimals",
    NOMAD,
    "lattice_vector_1_ang",
    lambda d: [
        f"{float(x):.{3 + (y > 2.5) + (y > 1.5)}f}"
        for x, y in zip(d.test["lattice_vector_1_ang"], d.label, strict=True)
    ],
)

# Columns of a task with many classes and few rows of each.
column("a number of the class", LEAVES, "shelf", lambda d: d.label.str[-2:].astype(int) * 3 + 11)


@plant("a code that the train data explains", LEAVES, "test.csv:shelf")
def _(data: Prepared) -> None:
    code = dict(zip(data.target.columns, RNG(3).permutation(10**6)[:60], strict=True))
    train = data.train
    labels = train[list(data.target.columns)].astype(int).idxmax(axis=1)
    data.write("train.csv", train.assign(shelf=labels.map(code)))
    data.write("test.csv", data.test.assign(shelf=data.label.map(code)))


# Columns of a task that asks for texts.
column("the text itself", TWEETS, "hint", lambda d: d.label)
column("the text among others", TWEETS, "hint", lambda d: "see: " + d.label.str.upper() + " / x")
column(
    "where the text begins",
    TWEETS,
    "offset",
    lambda d: [text.find(part) for text, part in zip(d.test["text"], d.label, strict=True)],
)
column("the source cut down", TWEETS, "text", lambda d: d.label)
column("how long the text is", TWEETS, "size", lambda d: d.label.str.len())
