"""What came of asking a language model once: its text, or a closed word for why there is none.

The words end up in answers to clients, so nothing here quotes what an endpoint sent.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any


class Trouble(StrEnum):
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
        return self in (Trouble.EMPTY, Trouble.CUT)

    @property
    def is_of_the_endpoint(self) -> bool:
        """Tell whether the next program can expect no better."""
        return not self.is_of_the_answer and self is not Trouble.REFUSED

    @property
    def text(self) -> str:
        """Return the words for a person."""
        return _TEXTS[self]


_TEXTS = {
    Trouble.DOWN: "is down",
    Trouble.LATE: "did not answer in time",
    Trouble.BUSY: "has too much to do",
    Trouble.FAILING: "answered with an error",
    Trouble.WRONG_MODEL: "is not the one that was asked for",
    Trouble.REFUSED: "refused the question",
    Trouble.OVERSIZED: "sent more than was asked for",
    Trouble.MALFORMED: "sent what is no chat completion",
    Trouble.EMPTY: "gave an empty answer",
    Trouble.CUT: "was cut off before the end of its answer",
}


@dataclass(frozen=True, slots=True)
class Reply:
    """The text of an answer, empty where there is `trouble`, and what it cost if that is told."""

    text: str = ""
    trouble: Trouble | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0


def read_reply(body: bytes, model: str) -> Reply:
    """Read a chat completion, and whether it is by this model and complete."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return Reply(trouble=Trouble.MALFORMED)
    if not isinstance(answer, dict):
        return Reply(trouble=Trouble.MALFORMED)
    if answer.get("model", model) != model:
        return Reply(trouble=Trouble.WRONG_MODEL)
    choices = answer.get("choices")
    if not isinstance(choices, list):
        return Reply(trouble=Trouble.MALFORMED)
    reply = _read_choice(choices[0]) if choices else Reply(trouble=Trouble.EMPTY)
    used = answer.get("usage")
    usage = used if isinstance(used, dict) else {}
    return replace(
        reply,
        prompt_tokens=_length(usage.get("prompt_tokens")) or 0,
        completion_tokens=_length(usage.get("completion_tokens")) or 0,
    )


def _read_choice(choice: Any) -> Reply:  # noqa: ANN401 - anything may come
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        return Reply(trouble=Trouble.MALFORMED)
    if choice.get("finish_reason") == "length":
        return Reply(trouble=Trouble.CUT)
    text = message.get("content")
    if not isinstance(text, str) or not text.strip():
        return Reply(trouble=Trouble.EMPTY)
    return Reply(text)


def read_models(body: bytes) -> dict[str, int | None] | None:
    """Read which models are served, each with the length of its context where that is told."""
    try:
        models = json.loads(body)["data"]
        return {str(model["id"]): _length(model.get("max_model_len")) for model in models}
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return None


def _length(told: object) -> int | None:
    return told if isinstance(told, int) and told > 0 else None
