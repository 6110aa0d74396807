"""Made-up pairs of phrases with Kaggle's columns and scores from an invented space of concepts.

A phrase is a noun, often with a word before it. Each word belongs to a group of words that mean
nearly the same, and each group to a family of related ones; how words are grouped is drawn
anew for every twin. Spelling shows when words are shared; that two different words mean the
same, how much a family counts in a section of the classification, and which of the two words
weighs more there, can only be learned from the scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reward_server.tasks.sdk.words import WordLists

if TYPE_CHECKING:
    from pathlib import Path

WORDS = WordLists(__file__)
SCORES = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
SHARES = np.array([0.205, 0.316, 0.337, 0.110, 0.032])
_SECTIONS = 8
_GROUP, _FAMILY = 4, 20
_PAIRS_PER_ANCHOR, _FEWEST_ANCHORS, _CLASSES_PER_ANCHOR = 50, 12, 4
_NONE = -1
_PLAIN, _PLURAL, _SMALL = 0, 1, 2
_NOISE = 0.06

Numbers: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Words:
    """Words with their places: four neighbours are a group, twenty a family."""

    names: NDArray[np.str_]
    family_worth: Numbers

    def related(self, rng: np.random.Generator, words: Codes, kinds: Codes) -> Codes:
        """Return for each word itself, one of its group, one of its family, or any."""
        total = len(self.names)
        spans = np.array([1, _GROUP, _FAMILY, total])[kinds]
        return np.asarray(words // spans * spans + rng.integers(0, spans))

    def similarity(self, left: Codes, right: Codes, sections: Codes) -> Numbers:
        """Return how close words are in meaning; a family counts by section."""
        worth = self.family_worth[sections, left // _FAMILY]
        closeness = np.where(left // _FAMILY == right // _FAMILY, worth, 0.0)
        closeness = np.where(left // _GROUP == right // _GROUP, 0.8, closeness)
        return np.asarray(np.where(left == right, 1.0, closeness))


@dataclass(frozen=True, slots=True)
class Lexicon:
    """All words, and how much the noun of a phrase weighs in each section."""

    nouns: Words
    modifiers: Words
    noun_weight: Numbers


@dataclass(frozen=True, slots=True)
class Phrases:
    """Phrases as numbers of words; a missing modifier is -1, a form changes the noun's spelling."""

    modifiers: Codes
    nouns: Codes
    forms: Codes

    def take(self, rows: Codes) -> Phrases:
        """Return the phrases of the rows."""
        return Phrases(self.modifiers[rows], self.nouns[rows], self.forms[rows])


def generate(raw: Path, seed: int, rows: int) -> None:
    """Write train.csv with `rows` pairs, none of which stands twice in one context."""
    rng = np.random.default_rng(seed)
    lexicon = _lexicon(rng)
    left, right, contexts = _pairs(rng, lexicon, rows)
    table = pd.DataFrame(
        {
            "anchor": _spell(lexicon, left),
            "target": _spell(lexicon, right),
            "context": np.array(WORDS.classes)[contexts],
            "closeness": _closeness(rng, lexicon, left, right, _sections(contexts)),
        }
    )
    table = table.drop_duplicates(["anchor", "target", "context"])
    table = table.iloc[rng.permutation(len(table))[:rows]]
    table.insert(0, "id", [rng.bytes(8).hex() for _ in range(len(table))])
    table["score"] = _quantise(table.pop("closeness").to_numpy(np.float64))
    table.to_csv(raw / "train.csv", index=False)


def _lexicon(rng: np.random.Generator) -> Lexicon:
    nouns, modifiers = (
        Words(rng.permutation(names), rng.uniform(0.0, 0.6, (_SECTIONS, len(names) // _FAMILY)))
        for names in (WORDS.nouns, WORDS.modifiers)
    )
    return Lexicon(nouns, modifiers, rng.permutation(np.linspace(0.35, 0.8, _SECTIONS)))


def _pairs(rng: np.random.Generator, lexicon: Lexicon, rows: int) -> tuple[Phrases, Phrases, Codes]:
    """Return more than enough pairs with their classes; some stand in several classes."""
    total = 2 * rows
    anchors, classes = _anchors(rng, rows)
    chosen = rng.integers(0, len(classes), total)
    targets = _targets(rng, lexicon, anchors.take(chosen))
    again = np.where(rng.random(total) < 0.3, rng.integers(0, total, total), np.arange(total))
    contexts = classes[chosen[again], rng.integers(0, _CLASSES_PER_ANCHOR, total)]
    return anchors.take(chosen[again]), targets.take(again), contexts


def _anchors(rng: np.random.Generator, rows: int) -> tuple[Phrases, Codes]:
    """Return the anchors, and the few classes in which each is compared."""
    total = max(_FEWEST_ANCHORS, rows // _PAIRS_PER_ANCHOR)
    both = rng.permutation(len(WORDS.nouns) * len(WORDS.modifiers))[:total]
    modifiers = np.where(rng.random(total) < 0.1, _NONE, both // len(WORDS.nouns))
    phrases = Phrases(modifiers, both % len(WORDS.nouns), np.full(total, _PLAIN))
    return phrases, rng.integers(0, len(WORDS.classes), (total, _CLASSES_PER_ANCHOR))


def _targets(rng: np.random.Generator, lexicon: Lexicon, anchors: Phrases) -> Phrases:
    total = len(anchors.nouns)
    kinds = rng.choice(4, (2, total), p=[0.26, 0.28, 0.26, 0.20])
    any_modifier = rng.integers(0, len(WORDS.modifiers), total)
    known = np.where(anchors.modifiers == _NONE, any_modifier, anchors.modifiers)
    chosen = lexicon.modifiers.related(rng, known, kinds[0])
    return Phrases(
        modifiers=np.where(rng.random(total) < 0.15, _NONE, chosen),
        nouns=lexicon.nouns.related(rng, anchors.nouns, kinds[1]),
        forms=rng.choice([_PLAIN, _PLURAL, _SMALL], total, p=[0.75, 0.15, 0.1]),
    )


def _closeness(
    rng: np.random.Generator, lexicon: Lexicon, left: Phrases, right: Phrases, sections: Codes
) -> Numbers:
    weight = lexicon.noun_weight[sections]
    by_noun = lexicon.nouns.similarity(left.nouns, right.nouns, sections)
    by_noun -= 0.1 * (right.forms == _SMALL)
    missing = (left.modifiers == _NONE).astype(int) + (right.modifiers == _NONE)
    both = lexicon.modifiers.similarity(left.modifiers.clip(0), right.modifiers.clip(0), sections)
    by_modifier = np.choose(missing, [both, np.full(len(both), 0.45), np.ones(len(both))])
    mixed = weight * by_noun + (1 - weight) * by_modifier + 0.3 * by_noun * by_modifier
    return np.asarray(mixed + _NOISE * rng.normal(size=len(mixed)))


def _quantise(closeness: Numbers) -> Numbers:
    """Turn closeness into the five scores, each with its share of the pairs."""
    bounds = np.quantile(closeness, np.cumsum(SHARES)[:-1])
    return np.asarray(SCORES[np.searchsorted(bounds, closeness)])


def _spell(lexicon: Lexicon, phrases: Phrases) -> NDArray[np.str_]:
    befores = np.append(np.char.add(lexicon.modifiers.names, " "), "")[phrases.modifiers]
    prefixes = np.array(["", "", "micro"])[phrases.forms]
    endings = np.array(["", "s", ""])[phrases.forms]
    spelled = np.char.add(np.char.add(prefixes, lexicon.nouns.names[phrases.nouns]), endings)
    return np.char.add(befores, spelled)


def _sections(contexts: Codes) -> Codes:
    letters = np.array([ord(name[0]) - ord("A") for name in WORDS.classes])
    return np.asarray(letters[contexts])
