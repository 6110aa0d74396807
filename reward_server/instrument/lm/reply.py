"""What came of asking a language model once: its text, or a closed word for why there is none.

The words end up in answers to clients, so nothing here quotes what an endpoint sent.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any


class LmTrouble(StrEnum):
    """Why an endpoint gave no text that could be used."""

    DOWN = "down"
    LATE = "late"
    BUSY = "busy"
    FAILING = "failing"
    WRONG_MODEL = "wrong_model"
    REFUSED = "refused"
    OVERSIZED = "oversized"
    MALFORMED = "malformed"
    EMPTY = "empty"
    CUT = "cut"

    @property
    def is_of_the_answer(self) -> bool:
        """Tell whether the model answered, and would answer the same to the same program."""
        return self in (LmTrouble.EMPTY, LmTrouble.CUT)

    @property
    def is_of_the_endpoint(self) -> bool:
        """Tell whether the next program can expect no better."""
        return not self.is_of_the_answer and self is not LmTrouble.REFUSED

    @property
    def text(self) -> str:
        """Return the words for a person."""
        return _TEXTS[self]


_TEXTS = {
    LmTrouble.DOWN: "is down",
    LmTrouble.LATE: "did not answer in time",
    LmTrouble.BUSY: "has too much to do",
    LmTrouble.FAILING: "answered with an error",
    LmTrouble.WRONG_MODEL: "is not the one that was asked for",
    LmTrouble.REFUSED: "refused the question",
    LmTrouble.OVERSIZED: "sent more than was asked for",
    LmTrouble.MALFORMED: "sent what is no chat completion",
    LmTrouble.EMPTY: "gave an empty answer",
    LmTrouble.CUT: "was cut off before the end of its answer",
}


@dataclass(frozen=True, slots=True)
class LmReply:
    """The text of an answer, empty where there is `trouble`, and what it cost if that is told."""

    text: str = ""
    trouble: LmTrouble | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0


def read_reply(body: bytes, model: str) -> LmReply:
    """Read a chat completion, and whether it is by this model and complete."""
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
        prompt_tokens=_length(usage.get("prompt_tokens")) or 0,
        completion_tokens=_length(usage.get("completion_tokens")) or 0,
    )


def _read_choice(choice: Any) -> LmReply:  # noqa: ANN401 - anything may come
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
    """Read which models are served, each with the length of its context where that is told."""
    try:
        models = json.loads(body)["data"]
        return {str(model["id"]): _length(model.get("max_model_len")) for model in models}
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return None


def _length(told: object) -> int | None:
    return told if isinstance(told, int) and told > 0 else None
