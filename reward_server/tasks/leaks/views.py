"""Views: features of a column, an id or a file that may reveal the label of its row.

A natural view (a value, a length) may well be related to the label: it is a leak only when it
nearly gives it away. A hidden one (a last digit, a trailing space) must not be related to the
label at all, unless the value itself is.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reward_server.tasks.leaks.evidence import to_numbers
from reward_server.tasks.leaks.strength import (
    NOTHING,
    Strength,
    association,
    from_groups,
    from_neighbours,
    trend,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pandas as pd

    from reward_server.tasks.leaks.strength import Codes, Labels, Numbers

HIDDEN_SKILL = 0.2
_MANY_VALUES = 30
_MOST_LETTERS = 24
_NOT_DIGITS = re.compile(r"\D+")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\u00a0\u0000-\u0008]")
_EVEN = {"0", "2", "4", "6", "8"}
_MODULI = (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16)


@dataclass(frozen=True, slots=True)
class View:
    """One feature of rows: groups with equal values, or a number a row (NaN for none)."""

    what: str
    groups: Codes | None = None
    numbers: Numbers | None = None
    is_hidden: bool = False

    def predict(self, labels: Labels) -> Strength:
        """Return how well the view predicts the labels."""
        return self._measure(labels, from_neighbours, from_groups)

    def associate(self, labels: Labels) -> Strength:
        """Return how far the labels differ between the groups of a view, or along its numbers."""
        return self._measure(labels, trend, association)

    def _measure(
        self,
        labels: Labels,
        along: Callable[[Numbers, Labels], Strength],
        between: Callable[[Codes, Labels], Strength],
    ) -> Strength:
        known = labels.known
        if self.numbers is not None:
            known &= np.isfinite(self.numbers)
            return along(self.numbers[known], labels.take(known))
        if self.groups is None or not known.any():
            return NOTHING
        return between(self.groups[known], labels.take(known))

    def relate(self, labels: Labels) -> Strength:
        """Return the prediction where it is strong enough for a hidden view, or the association."""
        strength = self.predict(labels)
        return strength if strength.beats(HIDDEN_SKILL) else self.associate(labels)

    def is_like(self, other: View) -> bool:
        """Tell whether it is the same view of another table."""
        return self.what == other.what and (self.groups is None) == (other.groups is None)


def codes_of(values: Iterable[object]) -> Codes:
    """Return equal values as equal whole numbers."""
    seen: dict[object, int] = {}
    return np.array([seen.setdefault(value, len(seen)) for value in values], dtype=np.intp)


def hidden_view(what: str, values: Iterable[object]) -> View:
    """Return a hidden view with equal values as groups."""
    return View(what, groups=codes_of(values), is_hidden=True)


def views_of(column: pd.Series) -> Iterator[View]:
    """Yield every view of a column of written values."""
    values = column.tolist()
    numbers = to_numbers(column)
    filled = np.array([value != "" for value in values])
    is_number = filled.any() and np.isfinite(numbers[filled]).mean() > 0.9
    yield View("its values", groups=codes_of(values))
    if not filled.all():
        yield View("that it is missing", groups=filled.astype(np.intp))
    if is_number:
        yield View("its values", numbers=numbers)
        if len(set(values)) > _MANY_VALUES:
            yield from _views_of_digits(values, float(np.nanmax(numbers) - np.nanmin(numbers)))
    else:
        yield from _views_of_texts(values)


def _views_of_digits(values: list[str], spread: float) -> Iterator[View]:
    plain = [value.strip().lower().partition("e")[0] for value in values]
    mantissas = [_NOT_DIGITS.sub("", value) for value in plain]
    fractions = [value.partition(".")[2] for value in plain]
    decimals = max(map(len, fractions))
    yield hidden_view("its number of decimals", map(len, fractions))
    yield hidden_view("its last digit being even", (x[-1:] in _EVEN for x in mantissas))
    for modulus in (3, 7):
        yield hidden_view(f"its rest by {modulus}", (int(x[-9:] or 0) % modulus for x in mantissas))
    # A digit is hidden only where the values run through all digits many times.
    if spread * 10**decimals >= 100:
        yield hidden_view("its last digit", (x[-1:] for x in mantissas))
    if spread * 10**decimals >= 1000:
        yield hidden_view("its second last digit", (x[-2:-1] for x in mantissas))
    for digit in range(1, 4):
        if decimals >= digit and spread * 10 ** (digit - 1) >= 10:
            yield hidden_view(f"decimal {digit}", (x[digit - 1 : digit] for x in fractions))
    for digit in (2, 4, 6):
        is_long = sum(len(x) > digit for x in fractions) > len(fractions) / 2
        if is_long and spread * 10**digit >= 10:
            rest = np.array([float(f"0.{x[digit:] or 0}") for x in fractions])
            yield View(f"its digits after decimal {digit}", numbers=rest, is_hidden=True)
    if not any(fractions) and spread >= 10_000:
        rest = np.array([float(x[-3:] or 0) for x in mantissas])
        yield View("its last three digits", numbers=rest, is_hidden=True)
    forms = ((value != value.strip(), "e" in value.lower(), value[:1] == "+") for value in values)
    yield hidden_view("how its numbers are written", forms)


def _views_of_texts(texts: list[str]) -> Iterator[View]:
    yield View("its length", numbers=_counts(len(text) for text in texts))
    yield View("its number of words", numbers=_counts(len(text.split()) for text in texts))
    yield View("its first letter", groups=codes_of(text[:1] for text in texts))
    yield View("its last letter", groups=codes_of(text[-1:] for text in texts))
    yield View("its last word", groups=codes_of(text.strip().rpartition(" ")[2] for text in texts))
    if len(set(texts)) < _MANY_VALUES:
        return
    spaces = ((len(x) - len(x.lstrip()), len(x) - len(x.rstrip())) for x in texts)
    yield hidden_view("spaces around it", spaces)
    yield hidden_view("double spaces in it", (min(text.strip().count("  "), 3) for text in texts))
    invisible = ("".join(_INVISIBLE.findall(text))[:4] for text in texts)
    yield hidden_view("invisible characters in it", invisible)
    yield hidden_view("its length being even", (len(text) % 2 for text in texts))
    yield hidden_view("its number of words being even", (len(text.split()) % 2 for text in texts))
    cases = codes_of((x[:1].isupper(), x[-1:].isupper(), x.isupper(), x.islower()) for x in texts)
    yield View("its capitals", groups=cases)


def id_numbers(ids: Sequence[str]) -> Numbers:
    """Return the digits of each id as one number, and NaN where there are none."""
    digits = (_NOT_DIGITS.sub("", name)[-15:] for name in ids)
    return np.array([float(x) if x else np.nan for x in digits])


def views_of_ids(ids: Sequence[str]) -> Iterator[View]:
    """Yield every view of ids; all are hidden, for an id must not depend on the label."""
    numbers = id_numbers(ids)
    yield View("the number in the id", numbers=numbers, is_hidden=True)
    ranks = np.unique(np.array(ids, dtype=str), return_inverse=True)[1]
    yield View("the order of the ids", numbers=ranks.astype(np.float64), is_hidden=True)
    for place in range(min(max(map(len, ids)), _MOST_LETTERS)):
        letters = [name[place : place + 1] for name in ids]
        if len(set(letters)) > 1:
            yield hidden_view(f"letter {place + 1} of the id", letters)
    yield hidden_view("the last letter of the id", (name[-1:] for name in ids))
    yield hidden_view("the length of the id", map(len, ids))
    forms = ((x.isupper(), x.islower(), x != x.strip()) for x in ids)
    yield hidden_view("the capitals and spaces of the id", forms)
    wholes = [int(x) for x in np.nan_to_num(numbers)]
    codes = [name.encode() for name in ids]
    sums = {
        "the number in the id": wholes,
        "the sum of the digits in the id": [sum(map(int, str(number))) for number in wholes],
        "the sum of the letters in the id": [sum(map(ord, name)) for name in ids],
        "the CRC-32 of the id": [zlib.crc32(code) for code in codes],
        "the MD5 of the id": [_digest_number("md5", code) for code in codes],
        "the SHA-256 of the id": [_digest_number("sha256", code) for code in codes],
    }
    for what, values in sums.items():
        for modulus in _MODULI:
            yield hidden_view(f"{what}, rest by {modulus},", (x % modulus for x in values))


def _digest_number(name: str, code: bytes) -> int:
    return int(hashlib.new(name, code, usedforsecurity=False).hexdigest(), 16)


def _counts(values: Iterable[int]) -> Numbers:
    return np.array(list(values), dtype=np.float64)
