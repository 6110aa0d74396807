"""The ways to look at a column of written values: its numbers, groups, lengths, digits, marks.

A natural view (a value, a length) may well be related to the label: it is a leak only when it
nearly gives it away. A hidden one (a last digit, a trailing space) has no business to be
related at all, unless the value itself is.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reward_server.tasks.leaks.evidence import to_numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pandas as pd

    from reward_server.tasks.leaks.strength import Codes, Numbers

_MANY_VALUES = 30
_NOT_DIGITS = re.compile(r"\D+")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\u00a0\u0000-\u0008]")
_EVEN = {"0", "2", "4", "6", "8"}
_MODULI = (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16)


@dataclass(frozen=True, slots=True)
class View:
    """One way to look at a column: groups of rows, or a number a row (NaN for none)."""

    what: str
    groups: Codes | None = None
    numbers: Numbers | None = None
    is_hidden: bool = False


def views_of(column: pd.Series) -> Iterator[View]:
    """Yield every view of a column of written values."""
    values = column.tolist()
    numbers = to_numbers(column)
    filled = np.array([value != "" for value in values])
    is_number = filled.any() and np.isfinite(numbers[filled]).mean() > 0.9
    yield View("its values", groups=codes_of(values))
    if is_number:
        yield View("its values", numbers=numbers)
    if not filled.all():
        yield View("that it is missing", groups=filled.astype(np.intp))
    if is_number:
        if len(set(values)) > _MANY_VALUES:
            yield from _digit_views(values, float(np.nanmax(numbers) - np.nanmin(numbers)))
    else:
        yield from _text_views(values)


def codes_of(values: Iterable[object]) -> Codes:
    """Return equal values as equal whole numbers."""
    seen: dict[object, int] = {}
    return np.array([seen.setdefault(value, len(seen)) for value in values], dtype=np.intp)


def _digit_views(values: list[str], spread: float) -> Iterator[View]:
    plain = [value.strip().lower().partition("e")[0] for value in values]
    mantissas = [_NOT_DIGITS.sub("", value) for value in plain]
    fractions = [value.partition(".")[2] for value in plain]
    decimals = max(map(len, fractions))
    yield _hidden("its number of decimals", map(len, fractions))
    yield _hidden("its last digit being even", (x[-1:] in _EVEN for x in mantissas))
    for modulus in (3, 7):
        yield _hidden(f"its rest by {modulus}", (int(x[-9:] or "0") % modulus for x in mantissas))
    # A digit is hidden only where the values run through all digits many times.
    if spread * 10**decimals >= 100:
        yield _hidden("its last digit", (x[-1:] for x in mantissas))
    if spread * 10**decimals >= 1000:
        yield _hidden("its second last digit", (x[-2:-1] for x in mantissas))
    for place in range(1, 4):
        if decimals >= place and spread * 10 ** (place - 1) >= 10:
            yield _hidden(f"decimal {place}", (x[place - 1 : place] for x in fractions))
    yield from _tails(mantissas, fractions, spread)
    forms = ((value != value.strip(), "e" in value.lower(), value[:1] == "+") for value in values)
    yield _hidden("how its numbers are written", forms)


def _tails(mantissas: list[str], fractions: list[str], spread: float) -> Iterator[View]:
    for place in (2, 4, 6):
        is_long = sum(len(x) > place for x in fractions) > len(fractions) / 2
        if is_long and spread * 10**place >= 10:
            tails = np.array([float(f"0.{x[place:] or 0}") for x in fractions])
            yield View(f"its digits after decimal {place}", numbers=tails, is_hidden=True)
    if not any(fractions) and spread >= 10_000:
        tails = np.array([float(x[-3:] or 0) for x in mantissas])
        yield View("its last three digits", numbers=tails, is_hidden=True)


def _hidden(what: str, values: Iterable[object]) -> View:
    return View(what, groups=codes_of(values), is_hidden=True)


def _text_views(texts: list[str]) -> Iterator[View]:
    yield View("its length", numbers=_counts(len(text) for text in texts))
    yield View("its number of words", numbers=_counts(len(text.split()) for text in texts))
    yield View("its first letters", groups=codes_of(text[:1] for text in texts))
    yield View("its last letters", groups=codes_of(text[-1:] for text in texts))
    yield View("its last word", groups=codes_of(text.strip().rpartition(" ")[2] for text in texts))
    if len(set(texts)) < _MANY_VALUES:
        return
    spaces = ((len(x) - len(x.lstrip()), len(x) - len(x.rstrip())) for x in texts)
    yield _hidden("spaces around it", spaces)
    yield _hidden("double spaces in it", (min(text.strip().count("  "), 3) for text in texts))
    invisible = ("".join(_INVISIBLE.findall(text))[:4] for text in texts)
    yield _hidden("invisible characters in it", invisible)
    yield _hidden("its length being even", (len(text) % 2 for text in texts))
    yield _hidden("its number of words being even", (len(text.split()) % 2 for text in texts))
    cases = codes_of((x[:1].isupper(), x[-1:].isupper(), x.isupper(), x.islower()) for x in texts)
    yield View("its capitals", groups=cases)


def views_of_ids(ids: Sequence[str]) -> Iterator[View]:
    """Yield every view of names of rows: all are hidden, for a name has no business to tell."""
    digits = [_NOT_DIGITS.sub("", name)[-15:] for name in ids]
    numbers = np.array([float(x) if x else np.nan for x in digits])
    yield View("the number in the id", numbers=numbers, is_hidden=True)
    ranks = np.unique(np.array(ids, dtype=str), return_inverse=True)[1]
    yield View("the order of the ids", numbers=ranks.astype(np.float64), is_hidden=True)
    wholes = [int(x or "0") for x in digits]
    for modulus in _MODULI:
        yield _hidden(f"the id's rest by {modulus}", (x % modulus for x in wholes))
    longest = max(map(len, ids))
    for place in range(min(longest, 24)):
        letters = [name[place : place + 1] for name in ids]
        if len(set(letters)) > 1:
            yield _hidden(f"letter {place + 1} of the id", letters)
    yield _hidden("the id's last letter", (name[-1:] for name in ids))
    yield _hidden("the id's length", map(len, ids))
    forms = ((x.isupper(), x.islower(), x != x.strip()) for x in ids)
    yield _hidden("the id's capitals and spaces", forms)
    yield from _sums(ids, wholes)


def _sums(ids: Sequence[str], wholes: list[int]) -> Iterator[View]:
    sums = {
        "the sum of the id's digits": [sum(map(int, str(number))) for number in wholes],
        "the sum of the id's letters": [sum(map(ord, name)) for name in ids],
        "the id's CRC-32": [zlib.crc32(name.encode()) for name in ids],
        "the id's MD5": [
            int(hashlib.md5(name.encode(), usedforsecurity=False).hexdigest(), 16) for name in ids
        ],
        "the id's SHA-256": [int(hashlib.sha256(name.encode()).hexdigest(), 16) for name in ids],
    }
    for what, values in sums.items():
        for modulus in (2, 3, 4, 5, 10):
            yield _hidden(f"{what}, rest by {modulus}", (value % modulus for value in values))


def _counts(values: Iterable[int]) -> Numbers:
    return np.array(list(values), dtype=np.float64)
