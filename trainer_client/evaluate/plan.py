"""The plan of an evaluation and its options."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Kind = Literal["scratch", "improve"]
KINDS: tuple[Kind, ...] = ("scratch", "improve")


class EvaluationError(Exception):
    """The evaluation cannot continue; the text says why, in one line."""


class UsageError(EvaluationError):
    """The options are not valid, or do not match the folder."""


@dataclass(frozen=True, slots=True)
class SampleSlot:
    """The identity of one sample."""

    task_id: str
    seed: int
    kind: Kind
    index: int

    def improving(self) -> SampleSlot:
        """Return the slot of the sample that improves on this one."""
        return SampleSlot(self.task_id, self.seed, "improve", self.index)

    def sampling_seed(self) -> int:
        """Return the endpoint's seed: a fixed one for every slot."""
        name = f"{self.task_id}/{self.seed}/{self.kind}/{self.index}"
        return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4]) >> 1


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """All parameters that affect the results. A folder holds the samples of one plan."""

    model: str
    tasks: tuple[str, ...]
    samples: int
    seeds: int
    temperature: float
    top_p: float
    max_tokens: int
    prompt_tokens: int | None
    tokenizer: str | None
    prompt_characters: int | None
    wall_seconds: float | None
    improve: bool
    run_id: str | None

    def slots(self) -> Iterator[SampleSlot]:
        """Yield the slots of all from-scratch samples."""
        for task_id in self.tasks:
            for seed in range(self.seeds):
                for index in range(self.samples):
                    yield SampleSlot(task_id, seed, "scratch", index)

    def budget(self) -> dict[str, object]:
        """Return the prompt budget as a field of the request."""
        if self.tokenizer is not None:
            return {"tokens": self.prompt_tokens, "tokenizer": self.tokenizer}
        return {"characters": self.prompt_characters}

    def run_of(self, seed: int) -> str:
        """Return the server's name for the samples of a seed."""
        return f"{self.run_id}/{seed}"

    def key_of(self, slot: SampleSlot) -> str:
        """Return the key under which a sample is scored, so that it is scored once."""
        return f"{self.run_id}/{slot.task_id}/{slot.seed}/{slot.kind}/{slot.index}"


@dataclass(frozen=True, slots=True)
class EvaluationOptions:
    """Where the servers are and how they are used. The results do not depend on it.

    `deadline_seconds` limits all attempts to generate a sample, `score_seconds` its scoring.
    """

    server: str
    endpoint: str
    out: Path
    json: Path | None
    server_key: str | None
    endpoint_key: str | None
    deadline_seconds: float
    score_seconds: float
    concurrency: int
    keeps_text: bool
