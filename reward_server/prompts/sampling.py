"""Drawing parents from a bounded pool: pure functions of the pool, the strategy and the dice."""

from __future__ import annotations

import math
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, assert_never

from reward_server.prompts.values import Strategy

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from random import Random

    from reward_server.store.solutions.parents import Candidate

TOP = 8


def distinct(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Return each program once, in the order in which they come."""
    first: dict[str, Candidate] = {}
    for candidate in candidates:
        first.setdefault(candidate.program_digest, candidate)
    return tuple(first.values())


def draw(
    pool: Sequence[Candidate],
    strategy: Strategy,
    temperature: float,
    dice: Random,
    count: int,
) -> list[Candidate]:
    """Draw so many parents from a pool that is not empty and has the best first."""
    match strategy:
        case Strategy.PREVIOUS_STEP:
            return dice.choices(pool, k=count)
        case Strategy.BEST:
            return dice.choices(pool[:TOP], k=count)
        case Strategy.SOFTMAX:
            return dice.choices(pool, weights=_weights(pool, temperature), k=count)
        case Strategy.DIVERSE:
            order = _around_families(pool, dice)
            return [order[at % len(order)] for at in range(count)]
        case never:
            assert_never(never)


def _weights(pool: Sequence[Candidate], temperature: float) -> list[float]:
    highest = max(candidate.reward for candidate in pool)
    return [math.exp((candidate.reward - highest) / temperature) for candidate in pool]


def _around_families(pool: Sequence[Candidate], dice: Random) -> list[Candidate]:
    """Return the best of every family, in any order, then the second best, and so on."""
    families: dict[str, list[Candidate]] = {}
    for candidate in pool:
        families.setdefault(candidate.family, []).append(candidate)
    names = sorted(families)
    dice.shuffle(names)
    rounds = zip_longest(*(families[name] for name in names))
    return [candidate for candidate in chain.from_iterable(rounds) if candidate is not None]
