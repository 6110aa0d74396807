"""What was read of a language model's answer, before it is known whether it holds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reward_server.model import Marker


class Dropped(StrEnum):
    """Why one marker of an answer was left out."""

    NO_STATEMENT = "not after a statement"
    NO_PLACE = "where no marker may stand"
    IMPLAUSIBLE = "not at such a step"
    UNKNOWN_STEP = "of an unknown step"
    NOT_PLAIN = "showing more than a name"
    UNBOUND = "showing a name unknown there"


class RefusedAnswerError(Exception):
    """The answer cannot be used at all; the text says why and quotes nothing of it."""


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """The markers an answer asks for, and how many it asked for in vain."""

    wanted: list[Marker] = field(default_factory=list)
    dropped: Counter[Dropped] = field(default_factory=Counter)
