"""Selects parents whose prompts fit the budget.

The lengths of programs are known before the draw; texts are read only of those drawn. If a
parent's prompt turns out too long, that parent and all that are at least as long leave the pool,
so a few rounds are enough whatever the pool holds. Drawing itself is a pure function of the
pool, the strategy and the random generator.
"""

from __future__ import annotations

import asyncio
import math
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, assert_never

from reward_server.prompts.composer import showable
from reward_server.prompts.prompt_types import Strategy

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from random import Random
    from uuid import UUID

    from reward_server.prompts.composer import Composer
    from reward_server.prompts.prompt_types import Messages
    from reward_server.store.solutions.parents import Candidate, ParentBody, Parents

    Draw = Callable[[Sequence[Candidate], int], list[Candidate]]

_LEAST_DRAWN = 16
TOP = 8


def without_duplicates(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Return each program once, in the given order."""
    first: dict[str, Candidate] = {}
    for candidate in candidates:
        first.setdefault(candidate.program_digest, candidate)
    return tuple(first.values())


def draw(
    pool: Sequence[Candidate],
    strategy: Strategy,
    temperature: float,
    rng: Random,
    count: int,
) -> list[Candidate]:
    """Draw `count` parents from a pool that is not empty and has the best first."""
    match strategy:
        case Strategy.PREVIOUS_STEP:
            return rng.choices(pool, k=count)
        case Strategy.BEST:
            return rng.choices(pool[:TOP], k=count)
        case Strategy.SOFTMAX:
            return rng.choices(pool, weights=_weights(pool, temperature), k=count)
        case Strategy.DIVERSE:
            order = _round_robin_families(pool, rng)
            return [order[at % len(order)] for at in range(count)]
        case never:
            assert_never(never)


def _weights(pool: Sequence[Candidate], temperature: float) -> list[float]:
    highest = max(candidate.reward for candidate in pool)
    return [math.exp((candidate.reward - highest) / temperature) for candidate in pool]


def _round_robin_families(pool: Sequence[Candidate], rng: Random) -> list[Candidate]:
    """Return the best of every family, in random order, then the second best, and so on."""
    families: dict[str, list[Candidate]] = {}
    for candidate in pool:
        families.setdefault(candidate.family, []).append(candidate)
    names = sorted(families)
    rng.shuffle(names)
    rounds = zip_longest(*(families[name] for name in names))
    return [candidate for candidate in chain.from_iterable(rounds) if candidate is not None]


async def write_prompts(
    parents: Parents, composer: Composer, solution_ids: Collection[UUID]
) -> dict[UUID, Messages]:
    """Return the prompts of these parents, without those that do not fit or cannot be shown."""
    most = composer.most_characters()
    bodies = (await parents.bodies(solution_ids)).values()
    fitting = [body for body in bodies if 0 < len(body.code) <= most]
    shown = [showable(body, composer.counter) for body in fitting]
    return await asyncio.to_thread(composer.improve, [body for body in shown if body is not None])


class ParentSelector:
    """Draws parents from one pool until enough of them fit."""

    def __init__(self, parents: Parents, composer: Composer, draw: Draw) -> None:
        self._parents = parents
        self._composer = composer
        self._draw = draw
        self._prompts: dict[UUID, Messages] = {}

    async def choose(
        self, candidates: Sequence[Candidate], count: int
    ) -> list[tuple[UUID, Messages]]:
        """Return `count` parents with their prompts; none at all if no parent fits."""
        most = self._composer.most_characters()
        pool = [candidate for candidate in candidates if 0 < candidate.code_chars <= most]
        chosen: list[UUID] = []
        while len(chosen) < count and pool:
            missing = count - len(chosen)
            # Drawing a few more than needed saves rounds when some do not fit.
            drawn = self._draw(pool, max(missing, _LEAST_DRAWN))
            pool = await self._write_new(drawn, pool)
            fitting = [c.solution_id for c in drawn if c.solution_id in self._prompts]
            chosen += fitting[:missing]
        return [(solution_id, self._prompts[solution_id]) for solution_id in chosen]

    async def _write_new(
        self, drawn: Sequence[Candidate], pool: Sequence[Candidate]
    ) -> list[Candidate]:
        """Write the prompts of newly drawn parents, and return what is left of the pool."""
        new = {c.solution_id: c for c in drawn if c.solution_id not in self._prompts}
        bodies = await self._parents.bodies(new)
        shown = [body for body in map(self._show, bodies.values()) if body is not None]
        self._prompts |= await asyncio.to_thread(self._composer.improve, shown)
        refused = new.keys() - self._prompts.keys()
        too_long = [
            new[body.solution_id].code_chars for body in shown if body.solution_id in refused
        ]
        shortest = min(too_long, default=None)
        return [
            candidate
            for candidate in pool
            if candidate.solution_id in self._prompts
            or (
                candidate.solution_id not in refused
                and (shortest is None or candidate.code_chars < shortest)
            )
        ]

    def _show(self, body: ParentBody) -> ParentBody | None:
        return showable(body, self._composer.counter)
