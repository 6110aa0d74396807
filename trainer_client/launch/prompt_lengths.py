"""The lengths of a task's prompts in tokens of the trained model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainer_client.client.errors import RequestRefusedError

if TYPE_CHECKING:
    from trainer_client.client.blocking import RewardClient
    from trainer_client.settings import RunSettings

Count = Callable[[list[dict[str, Any]]], int]
_CHARACTERS_PER_TOKEN = 4
_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Length:
    """The tokens of a from-scratch prompt, and the room for an earlier program in the shortest."""

    tokens: int
    room_characters: int


def measure(
    client: RewardClient, settings: RunSettings, task: str, limit: int, count: Count
) -> Length:
    """Return the length of a from-scratch prompt of at most `limit` tokens.

    Raises:
        ValueError: even the shortest is longer.
        RewardServerError: the server returns no prompt.
    """
    name = settings.prompts.tokenizer
    budget: dict[str, Any] = {"tokens": limit, "tokenizer": name} if name else {}
    if not name:
        budget = {"characters": limit * _CHARACTERS_PER_TOKEN}
    messages = _ask(client, settings, task, budget)
    tokens, shortest = count(messages), messages
    for _ in range(_ROUNDS):  # request shorter ones until the server has none
        smaller = {**budget, **_less(shortest, count(shortest), name)}
        try:
            shorter = _ask(client, settings, task, smaller)
        except RequestRefusedError:
            break
        if tokens > limit:
            messages, tokens = shorter, count(shorter)
        shortest = shorter
    if tokens > limit:
        message = f"the shortest prompt has {tokens:,} tokens, more than the {limit:,} of "
        raise ValueError(message + "data.max_prompt_length")
    text = sum(len(one["content"]) for one in shortest)
    left = max(0, limit - count(shortest))
    return Length(tokens, left * text // max(1, count(shortest)))


def _less(messages: list[dict[str, Any]], tokens: int, name: str | None) -> dict[str, int]:
    if name:
        return {"tokens": tokens * 4 // 5}
    return {"characters": sum(len(one["content"]) for one in messages) * 4 // 5}


def _ask(
    client: RewardClient, settings: RunSettings, task: str, budget: dict[str, Any]
) -> list[dict[str, Any]]:
    made = client.prompts(
        task,
        run_id=settings.run_id,
        n=1,
        improve_fraction=0,
        seed=settings.prompts.seed,
        wall_seconds=settings.wall_seconds,
        budget=budget,
    )
    messages: list[dict[str, Any]] = made["prompts"][0]["messages"]
    return messages
