"""Choosing parents that fit: lengths are known before the draw, texts are read of those drawn.

A parent whose prompt turns out to be too long is drawn anew, and with it all that are at least
as long, so a few rounds are enough whatever the pool holds.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from reward_server.prompts.composer import showable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from uuid import UUID

    from reward_server.prompts.composer import Composer
    from reward_server.prompts.values import Messages
    from reward_server.store.solutions.parents import Candidate, ParentBody, Parents

    Draw = Callable[[Sequence[Candidate], int], list[Candidate]]

_LEAST_DRAWN = 16


async def write_prompts(
    parents: Parents, composer: Composer, solution_ids: Collection[UUID]
) -> dict[UUID, Messages]:
    """Return the prompts of these parents, without those that do not fit or cannot be shown."""
    most = composer.most_characters()
    bodies = (await parents.bodies(solution_ids)).values()
    fitting = [body for body in bodies if 0 < len(body.code) <= most]
    shown = [showable(body, composer.gauge) for body in fitting]
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
        """Return so many parents with their prompts; fewer, if none fit, is none at all."""
        most = self._composer.most_characters()
        pool = [candidate for candidate in candidates if 0 < candidate.code_chars <= most]
        chosen: list[UUID] = []
        while len(chosen) < count and pool:
            missing = count - len(chosen)
            drawn = self._draw(pool, max(missing, _LEAST_DRAWN))
            pool = await self._look_at(drawn, pool)
            fitting = [c.solution_id for c in drawn if c.solution_id in self._prompts]
            chosen += fitting[:missing]
        return [(solution_id, self._prompts[solution_id]) for solution_id in chosen]

    async def _look_at(
        self, drawn: Sequence[Candidate], pool: Sequence[Candidate]
    ) -> list[Candidate]:
        """Write the prompts of those that are new, and return what is left of the pool."""
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
        return showable(body, self._composer.gauge)
