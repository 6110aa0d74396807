"""Slots of the docker sandbox, each with at most one container made ahead of time.

A container made ahead waits for a program of the same plan as the last one. It is used once or
thrown away, never used twice: warm means started early, not shared.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any

from reward_server.sandbox.docker.container import Container, open_box
from reward_server.sandbox.docker.engine import ContainerEngine, EngineError

if TYPE_CHECKING:
    from collections.abc import Callable

    from reward_server.sandbox.docker.container_config import ContainerPlan, SlotFolders

log = logging.getLogger(__name__)


class DockerSlot:
    """Room for one container with a program, and one that waits for the next."""

    def __init__(
        self,
        engine: ContainerEngine,
        place: SlotFolders,
        build: Callable[[SlotFolders, ContainerPlan], dict[str, Any]],
        *,
        is_warm: bool,
    ) -> None:
        self.place = place
        self._engine = engine
        self._build = build
        self._is_warm = is_warm
        self._plan: ContainerPlan | None = None
        self._ahead: asyncio.Task[Container] | None = None

    async def take(self, plan: ContainerPlan) -> Container:
        """Return a container for this plan that no program has seen, made ahead or now.

        Raises:
            EngineError: when none can be made.
        """
        ahead, self._ahead = self._ahead, None
        if ahead is not None and self._plan == plan:
            box = await self._claim(ahead)
            if box is not None:
                return box
        elif ahead is not None:
            await asyncio.shield(self._discard(ahead))
        return await self._wait_for(self._make(plan))

    def prepare(self, plan: ContainerPlan) -> None:
        """Begin to make the container for the next program."""
        if self._is_warm and self._ahead is None:
            self._plan = plan
            self._ahead = self._make(plan)

    def _make(self, plan: ContainerPlan) -> asyncio.Task[Container]:
        return asyncio.create_task(open_box(self._engine, self._build(self.place, plan)))

    async def _claim(self, ahead: asyncio.Task[Container]) -> Container | None:
        """Return what was made ahead if it came to be and still waits."""
        try:
            box = await self._wait_for(ahead)
        except EngineError as error:
            log.warning("a container made ahead could not be had: %s", error)
            return None
        if box.is_alive:
            return box
        await asyncio.shield(self._discard(ahead))
        return None

    async def _wait_for(self, making: asyncio.Task[Container]) -> Container:
        """Wait for a container; whoever gives up waiting leaves none behind."""
        try:
            return await asyncio.shield(making)
        except asyncio.CancelledError:
            await self._discard(making)
            raise

    @staticmethod
    async def _discard(making: asyncio.Task[Container]) -> None:
        with contextlib.suppress(EngineError):
            box = await asyncio.shield(making)
            await box.remove()

    async def close(self) -> None:
        """Take away what waits."""
        ahead, self._ahead = self._ahead, None
        self._is_warm = False
        if ahead is not None:
            await self._discard(ahead)
