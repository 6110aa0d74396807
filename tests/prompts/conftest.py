from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
from sqlalchemy import text

from reward_server.model import Limits
from reward_server.prompts.prompter import Defaults, Prompter
from reward_server.prompts.tokens import TokenGauge
from reward_server.store.parents import Parents
from reward_server.store.queries import Store
from reward_server.tasks.briefing.briefings import Briefings
from reward_server.tasks.briefing.packages import Package
from reward_server.tasks.preparation import prepare_task
from reward_server.tasks.registry import Registry
from tests.conftest import ROOT
from tests.prompts import bpe
from tests.store.conftest import database_url, engine, open_dir
from tests.tasks import tiny

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy.ext.asyncio import AsyncEngine

__all__ = ["database_url", "engine", "open_dir"]

TASKS = ("spooky-author-identification", "random-acts-of-pizza")
CEILING = Limits(3600, 8 << 30, 8 << 30, 256, 1024, 64 << 20, 1 << 30, 4)
PACKAGES = tuple(Package(name, "1.2.3") for name in ("numpy", "pandas", "scikit-learn"))


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> TokenGauge:
    patterns = ("tests/instrument/**/*.py", "docs/*.md", "reward_server/tasks/*/description.md")
    texts = (path.read_text() for pattern in patterns for path in sorted(ROOT.glob(pattern)))
    return TokenGauge("bpe", bpe.train(tmp_path_factory.mktemp("bpe"), texts))


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
def make_prompter(registry: Registry, tokenizer: TokenGauge) -> Callable[[AsyncEngine], Prompter]:
    briefings = Briefings(CEILING, PACKAGES)
    defaults = Defaults(CEILING, 16_000, 0.1, failed_too=False, has_gpu=False)

    def make(engine: AsyncEngine) -> Prompter:
        return Prompter(registry, briefings, Parents(engine), [tokenizer], defaults)

    return make


@pytest.fixture
def prompter(make_prompter: Callable[[AsyncEngine], Prompter], engine: AsyncEngine) -> Prompter:
    return make_prompter(engine)


@pytest_asyncio.fixture
async def store(engine: AsyncEngine) -> Store:
    await empty(engine)
    return Store(engine)


async def empty(engine: AsyncEngine) -> None:
    async with engine.connect() as connection:
        await connection.execute(text("TRUNCATE jobs, solutions, rewards, batches, batch_items"))
