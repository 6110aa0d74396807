"""Made-up comments with made-up, harmless insults, under Kaggle's names and columns.

Which adjectives are meant unkindly shows in counts of words. Which endings of the invented
names are meant so ("turnipchops") shows in parts of words alone, and whether a name is meant
for the reader or for someone else shows in the order of words alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reward_server.tasks.sdk.words import WordLists, pick

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

WORDS = WordLists(__file__)
_INSULTS_SHARE = 0.27
_TEST_SHARE = 2 / 3
_SPARE_SHARE = 0.05
_YEAR_SECONDS = 31_536_000

Numbers: TypeAlias = NDArray[np.float64]


def generate(raw: Path, seed: int, rows: int) -> None:
    """Write train.csv with `rows` comments and test_with_solutions.csv with two thirds as many."""
    rng = np.random.default_rng(seed)
    total = rows + max(2, round(_TEST_SHARE * rows))
    table = _comments(rng, total)
    train, test = table.iloc[:rows], table.iloc[rows:]
    usage = np.where(rng.random(len(test)) < 0.5, "PublicTest", "PrivateTest")
    train.to_csv(raw / "train.csv", index=False)
    test.assign(Usage=usage).to_csv(raw / "test_with_solutions.csv", index=False)


def _comments(rng: np.random.Generator, total: int) -> pd.DataFrame:
    """Draw comments of which no two are the same, at a fixed share of insults."""
    count = total + int(_SPARE_SHARE * total) + 10
    table = _remarks(rng, count)
    table["Date"] = _dates(rng, count)
    table["Comment"] = [_text(rng, remark) for remark in table["remark"]]
    kept = table.drop_duplicates("Comment").iloc[:total].reset_index(drop=True)
    is_insult = kept["heat"] > kept["heat"].quantile(1 - _INSULTS_SHARE)
    return kept.assign(Insult=is_insult.astype(int))[["Insult", "Date", "Comment"]]


def _remarks(rng: np.random.Generator, count: int) -> pd.DataFrame:
    """Draw remarks and how heated each is: unkind words count, and to whom they are said."""
    adjectives, stems, endings = (
        rng.integers(0, len(words), count)
        for words in (WORDS.adjectives, WORDS.stems, WORDS.endings)
    )
    is_named, is_direct = rng.random(count) < 0.8, rng.random(count) < 0.5
    heat = (
        1.5 * _meanings(rng, WORDS.adjectives)[adjectives]
        + is_named
        * (0.5 * _meanings(rng, WORDS.stems)[stems] + 2.0 * _meanings(rng, WORDS.endings)[endings])
        + is_named * np.where(is_direct, 1.4, -1.4)
        + 0.8 * rng.logistic(size=count)
    )
    names = np.where(
        is_named, np.char.add(np.take(WORDS.stems, stems), np.take(WORDS.endings, endings)), "fan"
    )
    remarks = [
        _remark(rng, str(adjective), str(name), is_direct=bool(direct))
        for adjective, name, direct in zip(
            np.take(WORDS.adjectives, adjectives), names, is_direct, strict=True
        )
    ]
    return pd.DataFrame({"remark": remarks, "heat": heat})


def _meanings(rng: np.random.Generator, words: Sequence[str]) -> Numbers:
    return rng.permutation(np.linspace(-1.7, 1.7, len(words)))


def _remark(rng: np.random.Generator, adjective: str, name: str, *, is_direct: bool) -> str:
    """Call either the reader or someone else a name; the same words serve for both."""
    mild, other = pick(rng, WORDS.mild), pick(rng, WORDS.others)
    meant, spared = ("you are", other) if is_direct else (other, "you are")
    called = f"{meant} a {adjective} {name}"
    clauses = [f"{spared} {mild}", called] if rng.random() < 0.5 else [called, f"{spared} {mild}"]
    text = " and ".join(clauses)
    return text[0].upper() + text[1:] + pick(rng, (".", ".", "!", "!!", "..."))


def _text(rng: np.random.Generator, remark: str) -> str:
    """Put a remark among others, in Kaggle's way: in double quotes, with escapes."""
    openings = [WORDS.openings[i] for i in rng.integers(0, len(WORDS.openings), rng.integers(1, 4))]
    if rng.random() < 0.08:
        openings[0] = rf"\"{openings[0]}\" they said."
    sentences = [*openings, pick(rng, WORDS.closings)]
    sentences.insert(int(rng.integers(0, len(openings) + 1)), remark)
    text = ""
    for sentence in filter(None, sentences):
        text += (pick(rng, WORDS.breaks) if text else "") + sentence
    return f'"{text}"'


def _dates(rng: np.random.Generator, count: int) -> pd.Series:
    """Draw local times of one year, of which some are not known."""
    seconds = pd.to_timedelta(rng.integers(0, _YEAR_SECONDS, count), unit="s")
    written = (pd.Timestamp("2012-01-01") + seconds).strftime("%Y%m%d%H%M%SZ")
    return pd.Series(written).where(rng.random(count) > 0.18)
