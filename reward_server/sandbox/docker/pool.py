"""Slots of the docker sandbox, each with at most one warm container.

A warm container is started ahead of time and waits for a program with the same plan as the last
one. It runs one program or is removed; no container ever runs two.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any

from reward_server.sandbox.docker.container import Container, open_container
from reward_server.sandbox.docker.engine import ContainerEngine, EngineError

if TYPE_CHECKING:
    from collections.abc import Callable

    from reward_server.sandbox.docker.container_config import ContainerPlan, SlotIdentity

log = logging.getLogger(__name__)


class DockerSlot:
    """Holds one container with a program, and one that waits for the next."""

    def __init__(
        self,
        engine: ContainerEngine,
        identity: SlotIdentity,
        build: Callable[[SlotIdentity, ContainerPlan], dict[str, Any]],
        *,
        keeps_warm: bool,
    ) -> None:
        self.identity = identity
        self._engine = engine
        self._build = build
        self._keeps_warm = keeps_warm
        self._plan: ContainerPlan | None = None
        self._warm: asyncio.Task[Container] | None = None

    async def take(self, plan: ContainerPlan) -> Container:
        """Return a container for this plan that no program has used, warm or new.

        Raises:
            EngineError: when none can be made.
        """
        warm, self._warm = self._warm, None
        if warm is not None and self._plan == plan:
            container = await self._claim(warm)
            if container is not None:
                return container
        elif warm is not None:
            await asyncio.shield(self._discard(warm))
        return await self._wait_for(self._make(plan))

    def prepare(self, plan: ContainerPlan) -> None:
        """Begin to make the container for the next program."""
        if self._keeps_warm and self._warm is None:
            self._plan = plan
            self._warm = self._make(plan)

    def _make(self, plan: ContainerPlan) -> asyncio.Task[Container]:
        return asyncio.create_task(open_container(self._engine, self._build(self.identity, plan)))

    async def _claim(self, warm: asyncio.Task[Container]) -> Container | None:
        """Return the warm container if it started and still waits."""
        try:
            container = await self._wait_for(warm)
        except EngineError as error:
            log.warning("a warm container did not start: %s", error)
            return None
        if container.is_alive:
            return container
        await asyncio.shield(self._discard(warm))
        return None

    async def _wait_for(self, making: asyncio.Task[Container]) -> Container:
        """Wait for a container; remove it if the caller is cancelled meanwhile."""
        try:
            return await asyncio.shield(making)
        except asyncio.CancelledError:
            await self._discard(making)
            raise

    @staticmethod
    async def _discard(making: asyncio.Task[Container]) -> None:
        with contextlib.suppress(EngineError):
            container = await asyncio.shield(making)
            await container.remove()

    async def close(self) -> None:
        """Remove the container that waits."""
        warm, self._warm = self._warm, None
        self._keeps_warm = False
        if warm is not None:
            await self._discard(warm)
