"""The report of the lint: checks with their scope, and findings with place, strength and remedy."""

from __future__ import annotations

import tomllib
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reward_server.tasks.leaks.strength import Strength


class Severity(StrEnum):
    """Whether a finding fails the check: a leak and a fault do, a note informs."""

    LEAK = "leak"
    FAULT = "fault"
    NOTE = "note"


class LeakKind(StrEnum):
    """What was found; every kind has a fixed explanation and advice."""

    LABEL_COLUMN = "label column"
    PREDICTIVE_COLUMN = "predictive column"
    PURE_VALUES = "values with one label alone"
    HIDDEN_CHANNEL = "hidden channel"
    PREDICTIVE_ORDER = "predictive order"
    PREDICTIVE_ID = "predictive id"
    OVERLAP = "overlap"
    ANSWERS_IN_FILE = "answers in a file"
    FILE_METADATA = "predictive file metadata"
    PREDICTIVE_SAMPLE = "predictive sample submission"
    BUNDLED = "bundled data"
    DAMAGED = "damaged data"
    UNCHECKED = "not checked"


_ADVICE = tomllib.loads(Path(__file__).with_name("advice.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class LeakFinding:
    """One finding: where, what, and how strong it is."""

    kind: LeakKind
    place: str
    reason: str
    strength: str = ""
    severity: Severity = Severity.LEAK

    @property
    def why(self) -> str:
        """Return why it matters."""
        return str(_ADVICE[self.kind]["why"])

    @property
    def remedy(self) -> str:
        """Return what to do about it."""
        return str(_ADVICE[self.kind]["remedy"])

    @property
    def sentence(self) -> str:
        """Return the finding as one line."""
        strength = f" ({self.strength})" if self.strength else ""
        return f"{self.severity} in {self.place}: {self.reason}{strength}"


@dataclass(frozen=True, slots=True)
class LeakCheck:
    """One check: what it covered and what it found."""

    name: str
    scope: str
    findings: tuple[LeakFinding, ...] = ()

    @property
    def failed(self) -> bool:
        """Tell whether anything worse than a note was found."""
        return any(finding.severity is not Severity.NOTE for finding in self.findings)


@dataclass(frozen=True, slots=True)
class LeakReport:
    """All checks of the data of one task."""

    task_id: str
    checks: tuple[LeakCheck, ...]

    @property
    def failures(self) -> tuple[LeakFinding, ...]:
        """Return the findings that are more than notes."""
        found = (finding for check in self.checks for finding in check.findings)
        return tuple(finding for finding in found if finding.severity is not Severity.NOTE)

    def as_json(self) -> dict[str, Any]:
        """Return the report for machines."""
        return {
            "task_id": self.task_id,
            "ok": not self.failures,
            "looks": [
                {
                    "name": check.name,
                    "scope": check.scope,
                    "findings": [
                        asdict(finding) | {"why": finding.why, "remedy": finding.remedy}
                        for finding in check.findings
                    ],
                }
                for check in self.checks
            ],
        }

    def as_lines(self) -> Iterator[str]:
        """Yield the report for a person, a line per check and a few per finding."""
        yield f"{self.task_id}: {'not ok' if self.failures else 'ok'}"
        for check in self.checks:
            state = "FAIL" if check.failed else "note" if check.findings else "ok"
            yield f"  {state:<4}  {check.name}: {check.scope}"
            for finding in check.findings:
                yield f"          {finding.sentence}"
                if finding.severity is not Severity.NOTE:
                    yield f"            why: {finding.why}"
                    yield f"            do:  {finding.remedy}"


WeighedFinding = tuple[float, LeakFinding]


def weigh(
    kind: LeakKind, place: str, reason: str, strength: Strength, severity: Severity = Severity.LEAK
) -> WeighedFinding:
    """Return a finding that weighs as much as it predicts."""
    return strength.skill, LeakFinding(kind, place, reason, strength.text, severity)


def fault(place: str, reason: str) -> LeakFinding:
    """Return the finding that data is damaged."""
    return LeakFinding(LeakKind.DAMAGED, place, reason, severity=Severity.FAULT)


def unchecked(place: str, reason: str) -> LeakFinding:
    """Return the note that a part was not checked."""
    return LeakFinding(LeakKind.UNCHECKED, place, reason, severity=Severity.NOTE)


def strongest_by_place(findings: Iterable[WeighedFinding]) -> tuple[LeakFinding, ...]:
    """Return one finding per place, the most severe and strongest, in the order of places."""
    best: dict[str, tuple[float, LeakFinding]] = {}
    for weight, finding in findings:
        full = weight + 10 * (finding.severity is not Severity.NOTE)
        if finding.place not in best or full > best[finding.place][0]:
            best[finding.place] = full, finding
    return tuple(finding for _, finding in best.values())
