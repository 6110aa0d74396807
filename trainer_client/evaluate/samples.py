"""The durable journal of an evaluation: completions before scoring, and finished samples.

`drawn.jsonl` has a line for every completion. It is on disk before the request to the server, so
an interrupted evaluation scores the same text again. `samples.jsonl` has a line for every finished
sample. An incomplete last line is dropped.
"""

from __future__ import annotations

import errno
import json
import os
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Self

from trainer_client.evaluate.plan import Kind, SampleSlot, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from io import FileIO
    from pathlib import Path

    from trainer_client.client.answers import Answer

SAMPLES = "samples.jsonl"
DRAWN = "drawn.jsonl"


@dataclass(frozen=True, slots=True)
class GeneratedSample:
    """A completion and its length in tokens."""

    completion: str
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class SampleRecord:
    """A finished sample; `completion` is missing if texts are not kept."""

    task_id: str
    seed: int
    kind: Kind
    index: int
    reward: float
    score: float | None
    valid: bool
    error_kind: str | None
    medal: str | None
    duration_seconds: float
    solution_id: str
    parent_id: str | None
    data_digest: str
    scheme: str
    finish_reason: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    completion: str | None

    @classmethod
    def of(
        cls, slot: SampleSlot, generated: GeneratedSample, answer: Answer, parent_id: str | None
    ) -> Self:
        """Combine a completion and its answer."""
        return cls(
            **asdict(slot),
            **asdict(generated),
            reward=answer.reward,
            score=answer.score,
            valid=answer.valid,
            error_kind=None if answer.error is None else answer.error.kind,
            medal=answer.medal,
            duration_seconds=answer.duration_seconds,
            solution_id=answer.solution_id,
            parent_id=parent_id,
            data_digest=answer.data_digest,
            scheme=answer.scheme,
        )


class SampleJournal:
    """The samples of an evaluation. Every addition is on disk when the call returns.

    `skipped` has the solutions that could not be improved on, with the reason.

    Raises UsageError for a file that it cannot parse.
    """

    def __init__(self, folder: Path, *, keeps_text: bool) -> None:
        self.samples: dict[SampleSlot, SampleRecord] = {}
        self.skipped: dict[SampleSlot, str] = {}
        self.generated: dict[SampleSlot, GeneratedSample] = {}
        self._keeps_text = keeps_text
        self._sample_lines = _Lines(folder / SAMPLES)
        self._generated_lines = _Lines(folder / DRAWN)
        self._sample_lines.read(self._read_sample)
        self._generated_lines.read(self._read_generated)

    def is_finished(self, slot: SampleSlot) -> bool:
        """Tell whether a sample is finished or skipped."""
        return slot in self.samples or slot in self.skipped

    def add_generated(self, slot: SampleSlot, generated: GeneratedSample) -> None:
        """Add a completion that has no score yet."""
        self._generated_lines.add(asdict(slot) | asdict(generated))
        self.generated[slot] = generated

    def add(self, slot: SampleSlot, sample: SampleRecord) -> None:
        """Add a finished sample."""
        kept = sample if self._keeps_text else replace(sample, completion=None)
        self._sample_lines.add(asdict(kept))
        self.samples[slot] = kept
        self.generated.pop(slot, None)

    def add_skipped(self, slot: SampleSlot, reason: str) -> None:
        """Record that a solution cannot be improved on."""
        self._sample_lines.add(asdict(slot) | {"skipped": reason})
        self.skipped[slot] = reason

    def close(self) -> None:
        """Close the files, and delete the completions once all have a score."""
        self._sample_lines.close()
        self._generated_lines.close()
        if not self.generated:
            self._generated_lines.path.unlink(missing_ok=True)

    def _read_sample(self, line: dict[str, Any]) -> None:
        slot = _slot(line)
        if "skipped" in line:
            self.skipped[slot] = line["skipped"]
        else:
            self.samples[slot] = SampleRecord(**_fields(line, SampleRecord))

    def _read_generated(self, line: dict[str, Any]) -> None:
        slot = _slot(line)
        if not self.is_finished(slot):
            self.generated[slot] = GeneratedSample(**_fields(line, GeneratedSample))


class _Lines:
    """An append-only file of JSON lines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: FileIO | None = None

    def read(self, read_line: Callable[[dict[str, Any]], None]) -> None:
        """Read all lines, and truncate an incomplete last one."""
        content = self.path.read_bytes() if self.path.exists() else b""
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            os.truncate(self.path, len(whole))
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                read_line(json.loads(line))
            except (ValueError, KeyError, TypeError):
                message = f"line {number} of {self.path} cannot be read"
                raise UsageError(message) from None

    def add(self, content: dict[str, Any]) -> None:
        """Write a line and wait until it is on disk. A full disk leaves no partial line."""
        if self._file is None:
            self._file = self.path.open("ab", buffering=0)
        line = json.dumps(content, allow_nan=False).encode() + b"\n"
        size = self._file.tell()
        written = self._file.write(line)
        if written != len(line):
            self._file.truncate(size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
        os.fsync(self._file.fileno())

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def _slot(line: dict[str, Any]) -> SampleSlot:
    return SampleSlot(line["task_id"], line["seed"], line["kind"], line["index"])


def _fields(line: dict[str, Any], kind: type[GeneratedSample | SampleRecord]) -> dict[str, Any]:
    return {one.name: line[one.name] for one in fields(kind)}
