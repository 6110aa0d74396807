from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
from sqlalchemy import text

from reward_server.model import Limits
from reward_server.prompts.chat_tokens import ChatTokenCounter
from reward_server.prompts.service import PromptDefaults, PromptService
from reward_server.store.queries import Store
from reward_server.store.solutions.parents import Parents
from reward_server.tasks.briefing.briefings import Briefings
from reward_server.tasks.briefing.packages import Package
from reward_server.tasks.preparation.prepare import prepare_task
from reward_server.tasks.registry import Registry
from tests.integration.store.conftest import database_url, engine, open_dir
from tests.integration.tasks import tiny
from tests.support import bpe

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy.ext.asyncio import AsyncEngine

__all__ = ["database_url", "engine", "open_dir"]

TASKS = ("spooky-author-identification", "random-acts-of-pizza")
CEILING = Limits(3600, 8 << 30, 8 << 30, 256, 1024, 64 << 20, 1 << 30, 4)
PACKAGES = tuple(Package(name, "1.2.3") for name in ("numpy", "pandas", "scikit-learn"))


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> ChatTokenCounter:
    return ChatTokenCounter("bpe", bpe.train_on_repository(tmp_path_factory.mktemp("bpe")))


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    folder = tmp_path_factory.mktemp("tasks")
    tiny.write_task(folder)
    data = tmp_path_factory.mktemp("data")
    registry = Registry(data, [folder])
    for task_id in (tiny.ID, *TASKS):
        prepare_task(registry.folder(task_id), data)
    return registry


@pytest.fixture(scope="session")
def make_service(
    registry: Registry, tokenizer: ChatTokenCounter
) -> Callable[[AsyncEngine], PromptService]:
    briefings = Briefings(CEILING, PACKAGES)
    defaults = PromptDefaults(CEILING, 16_000, 0.1, failed_too=False, has_gpu=False)

    def make(engine: AsyncEngine) -> PromptService:
        return PromptService(registry, briefings, Parents(engine), [tokenizer], defaults)

    return make


@pytest.fixture
def service(
    make_service: Callable[[AsyncEngine], PromptService], engine: AsyncEngine
) -> PromptService:
    return make_service(engine)


@pytest_asyncio.fixture
async def store(engine: AsyncEngine) -> Store:
    await empty(engine)
    return Store(engine)


async def empty(engine: AsyncEngine) -> None:
    async with engine.connect() as connection:
        await connection.execute(text("TRUNCATE jobs, solutions, rewards, batches, batch_items"))
