"""One client for all that a run does in an event loop, or in a process."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from trainer_client.run import Run, without_end
from trainer_client.settings import RunSettings

RUN = Run(run_id="shared")
NODE = {"url": "http://127.0.0.1:8000", "tasks": ["a-task"], "run_id": "r"}


async def _client(run: Run) -> object:
    return run.shared_async_client()


async def test_a_run_has_one_client_in_an_event_loop() -> None:
    assert await _client(RUN) is await _client(Run(run_id="shared"))
    assert await _client(RUN) is not await _client(Run(run_id="another"))


def test_another_event_loop_has_a_client_of_its_own() -> None:
    first, second = asyncio.run(_client(RUN)), asyncio.run(_client(RUN))
    assert first is not second


def test_all_threads_have_the_same_client() -> None:
    with ThreadPoolExecutor(8) as threads:
        clients = list(threads.map(lambda _: RUN.shared_client(), range(64)))
    assert len({id(client) for client in clients}) == 1


@pytest.mark.parametrize("end", ["<|im_end|>", "</s>", "<|eot_id|>\n", "<eos><pad><pad>", ""])
def test_trailing_special_tokens_are_stripped(end: str) -> None:
    text = "```python\nprint('<|im_end|>')\n```"
    assert without_end(text + end) == text


def test_many_special_tokens_are_stripped_fast() -> None:
    assert without_end("<|" * 1_000_000).startswith("<|<|")
    assert without_end("</s>" * 1_000_000).startswith("</s></s>")


@pytest.mark.parametrize(
    ("strategy", "taken"), [("previous_step", "best"), ("softmax", "softmax"), (None, "best")]
)
def test_without_steps_prompts_improve_on_the_best(strategy: str | None, taken: str) -> None:
    prompts = {} if strategy is None else {"strategy": strategy}
    settings = RunSettings.read({**NODE, "prompts": prompts}).without_steps()
    assert settings.prompts.strategy == taken
