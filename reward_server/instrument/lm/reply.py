"""The result of one request to a language model: its text, or a `LmTrouble` that says why not.

These reasons reach clients, so nothing here quotes what an endpoint sent.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any


class LmTrouble(StrEnum):
    """Why an endpoint gave no text that could be used, in words to follow "the language model"."""

    DOWN = "is down"
    LATE = "did not answer in time"
    BUSY = "has too much to do"
    FAILING = "answered with an error"
    WRONG_MODEL = "is not the one that was asked for"
    REFUSED = "refused the question"
    OVERSIZED = "sent more than was asked for"
    MALFORMED = "sent what is no chat completion"
    EMPTY = "gave an empty answer"
    CUT = "was cut off before the end of its answer"

    @property
    def is_final(self) -> bool:
        """Tell whether the same request would get the same result again."""
        return self in (LmTrouble.EMPTY, LmTrouble.CUT)

    @property
    def counts_against_endpoint(self) -> bool:
        """Tell whether the next request is likely to fail as well."""
        return not self.is_final and self is not LmTrouble.REFUSED


@dataclass(frozen=True, slots=True)
class LmReply:
    """The text of a reply, empty if there is `trouble`, and the tokens it used, if reported."""

    text: str = ""
    trouble: LmTrouble | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0


def read_reply(body: bytes, model: str) -> LmReply:
    """Read a chat completion, and check that it is complete and by this model."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return LmReply(trouble=LmTrouble.MALFORMED)
    if not isinstance(answer, dict):
        return LmReply(trouble=LmTrouble.MALFORMED)
    if answer.get("model", model) != model:
        return LmReply(trouble=LmTrouble.WRONG_MODEL)
    choices = answer.get("choices")
    if not isinstance(choices, list):
        return LmReply(trouble=LmTrouble.MALFORMED)
    reply = _read_choice(choices[0]) if choices else LmReply(trouble=LmTrouble.EMPTY)
    used = answer.get("usage")
    usage = used if isinstance(used, dict) else {}
    return replace(
        reply,
        prompt_tokens=_positive(usage.get("prompt_tokens")) or 0,
        completion_tokens=_positive(usage.get("completion_tokens")) or 0,
    )


def _read_choice(choice: Any) -> LmReply:  # noqa: ANN401 - untrusted
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        return LmReply(trouble=LmTrouble.MALFORMED)
    if choice.get("finish_reason") == "length":
        return LmReply(trouble=LmTrouble.CUT)
    text = message.get("content")
    if not isinstance(text, str) or not text.strip():
        return LmReply(trouble=LmTrouble.EMPTY)
    return LmReply(text)


def read_models(body: bytes) -> dict[str, int | None] | None:
    """Read which models are served, each with the length of its context, if reported."""
    try:
        models = json.loads(body)["data"]
        return {str(model["id"]): _positive(model.get("max_model_len")) for model in models}
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return None


def _positive(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None
