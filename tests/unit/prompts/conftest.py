from __future__ import annotations

import pytest

from reward_server.prompts.chat_tokens import ChatTokenCounter
from tests.support import bpe


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> ChatTokenCounter:
    return ChatTokenCounter("bpe", bpe.train_on_repository(tmp_path_factory.mktemp("bpe")))
