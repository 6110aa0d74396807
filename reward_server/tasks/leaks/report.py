"""What the lint says: one look a check, and for each finding where, what, how strong and why."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Severity(StrEnum):
    """Whether a finding fails the check: a leak and a fault do, a note informs."""

    LEAK = "leak"
    FAULT = "fault"
    NOTE = "note"


class LeakKind(StrEnum):
    """What was found; every kind has a fixed explanation and advice."""

    LABEL_COLUMN = "label column"
    TELLING_COLUMN = "telling column"
    PARTLY_TELLING = "partly telling"
    HIDDEN_CHANNEL = "hidden channel"
    TELLING_ORDER = "telling order"
    TELLING_ID = "telling id"
    OVERLAP = "overlap"
    ANSWERS_IN_FILE = "answers in a file"
    TELLING_FILES = "telling files"
    TELLING_SAMPLE = "telling sample"
    BUNDLED = "bundled data"
    DAMAGED = "damaged data"
    UNKNOWN = "not looked at"


@dataclass(frozen=True, slots=True)
class _Advice:
    why: str
    remedy: str


_ADVICE = {
    LeakKind.LABEL_COLUMN: _Advice(
        "a program reads the answers instead of predicting them",
        "drop the column from the public file in prepare.py",
    ),
    LeakKind.TELLING_COLUMN: _Advice(
        "this column alone predicts the label, so that a score says nothing about a model",
        "drop the column, or make sure that it is known when a prediction is due",
    ),
    LeakKind.PARTLY_TELLING: _Advice(
        "the labels of these rows can be read off without a model",
        "blank or drop the column in both public files",
    ),
    LeakKind.HIDDEN_CHANNEL: _Advice(
        "honest data has no such trace, so something wrote the label into it",
        "write the column anew from the raw data, rounded and formatted alike for all rows",
    ),
    LeakKind.TELLING_ORDER: _Advice(
        "a row's place gives its label away", "shuffle the rows with a fixed seed in prepare.py"
    ),
    LeakKind.TELLING_ID: _Advice(
        "a row's id gives its label away", "number the rows anew after shuffling them"
    ),
    LeakKind.OVERLAP: _Advice(
        "what stands in the train data can be looked up with its label",
        "split by group, or drop what stands on both sides",
    ),
    LeakKind.ANSWERS_IN_FILE: _Advice(
        "a program reads the answers instead of predicting them",
        "remove the file from what prepare.py writes",
    ),
    LeakKind.TELLING_FILES: _Advice(
        "names and metadata of files give labels away without looking at their contents",
        "write the files anew: same form of name, no metadata, one date",
    ),
    LeakKind.TELLING_SAMPLE: _Advice(
        "copying the sample submission earns a score", "fill the sample with one constant"
    ),
    LeakKind.BUNDLED: _Advice(
        "the answers stand in a package that every program can import",
        "do not make a task of data that the sandbox ships",
    ),
    LeakKind.DAMAGED: _Advice(
        "what is served is not what was prepared", "prepare the task again"
    ),
    LeakKind.UNKNOWN: _Advice(
        "nobody has looked at this part", "look at it yourself, or unpack it in prepare.py"
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class LeakFinding:
    """One thing that was found: where, what, and how strong it is."""

    kind: LeakKind
    place: str
    reason: str
    strength: str = ""
    severity: Severity = Severity.LEAK

    @property
    def why(self) -> str:
        """Return why it matters."""
        return _ADVICE[self.kind].why

    @property
    def remedy(self) -> str:
        """Return what to do about it."""
        return _ADVICE[self.kind].remedy

    @property
    def sentence(self) -> str:
        """Return the finding as one line."""
        strength = f" ({self.strength})" if self.strength else ""
        return f"{self.severity} in {self.place}: {self.reason}{strength}"


@dataclass(frozen=True, slots=True)
class LeakCheck:
    """One check: what was looked at, and what came of it."""

    name: str
    scope: str
    findings: tuple[LeakFinding, ...] = ()

    @property
    def failed(self) -> bool:
        """Tell whether anything worse than a note was found."""
        return any(finding.severity is not Severity.NOTE for finding in self.findings)


@dataclass(frozen=True, slots=True)
class LeakReport:
    """Everything that was looked at in the data of one task."""

    task_id: str
    looks: tuple[LeakCheck, ...]

    @property
    def failures(self) -> tuple[LeakFinding, ...]:
        """Return the findings that are more than notes."""
        found = (finding for look in self.looks for finding in look.findings)
        return tuple(finding for finding in found if finding.severity is not Severity.NOTE)

    def as_json(self) -> dict[str, Any]:
        """Return the report for machines."""
        return {
            "task_id": self.task_id,
            "ok": not self.failures,
            "looks": [
                {
                    "name": look.name,
                    "scope": look.scope,
                    "findings": [
                        asdict(finding) | {"why": finding.why, "remedy": finding.remedy}
                        for finding in look.findings
                    ],
                }
                for look in self.looks
            ],
        }

    def as_lines(self) -> Iterator[str]:
        """Yield the report for a person, a line per check and a few per finding."""
        yield f"{self.task_id}: {'not ok' if self.failures else 'ok'}"
        for look in self.looks:
            state = "FAIL" if look.failed else "note" if look.findings else "ok"
            yield f"  {state:<4}  {look.name}: {look.scope}"
            for finding in look.findings:
                yield f"          {finding.sentence}"
                if finding.severity is not Severity.NOTE:
                    yield f"            why: {finding.why}"
                    yield f"            do:  {finding.remedy}"


def strongest_by_place(findings: Iterable[tuple[float, LeakFinding]]) -> tuple[LeakFinding, ...]:
    """Return one finding a place, the most severe and strongest, in the order of places."""
    best: dict[str, tuple[float, LeakFinding]] = {}
    for weight, finding in findings:
        full = weight + 10 * (finding.severity is not Severity.NOTE)
        if finding.place not in best or full > best[finding.place][0]:
            best[finding.place] = full, finding
    return tuple(finding for _, finding in best.values())
