"""Do files beside the tables give labels away: copies of answers, or files that belong to rows?"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from reward_server.tasks.leaks import attached
from reward_server.tasks.leaks.contents import find_answers
from reward_server.tasks.leaks.items import (
    MOST_FILES,
    MOST_UNPACKED_BYTES,
    Item,
    SealedError,
    files_below,
    members_of,
)
from reward_server.tasks.leaks.report import (
    LeakCheck,
    LeakFinding,
    LeakKind,
    Severity,
    strongest_by_place,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from reward_server.tasks.base import Card
    from reward_server.tasks.leaks.columns import Found
    from reward_server.tasks.leaks.evidence import LeakEvidence

_MOST_READ_BYTES = 512 << 20
_NOTABLE_COPIES = 0.005
_TOO_MANY_COPIES = 0.02
_MOST_COMPARED = 2_000
_MANY_ALIKE = 40
_DEPTH = 3
_VARYING = re.compile(r"\d+")


def look_at_files(
    card: Card, public: Path, answers: Path, evidence: LeakEvidence | None
) -> LeakCheck:
    """Look at every public file that is no table of the task, and into archives."""
    items, findings = _unpack(files_below(public))
    families = {} if evidence is None else attached.families(items, evidence)
    attached_names = {item.name for family in families.values() for _, item, _ in family}
    private = _private_digests(answers.parent)
    known = _table_digests(card, public)
    read = 0
    for item in _lone(items):
        if item.name in attached_names or _is_table(card, item.name):
            continue
        if read > _MOST_READ_BYTES or item.size > MOST_UNPACKED_BYTES:
            findings += _copy_by_size(item, private)
            continue
        try:
            data = item.read()
        except SealedError as error:
            findings.append(_sealed(item, error))
            continue
        read += len(data)
        findings += _judge(item, data, private, known, evidence)
    found: list[Found] = [(1.0, finding) for finding in findings]
    if evidence is not None:
        for pattern, family in families.items():
            found += attached.find_in_family(pattern, family, evidence)
        found += [(1.0, finding) for finding in _copies(families, items, evidence)]
    more = f", the first {MOST_FILES} only" if len(items) >= MOST_FILES else ""
    scope = (
        f"{len(items)} files and members of archives{more}, {len(attached_names)} named after rows"
    )
    return LeakCheck("files beside the tables", scope, strongest_by_place(found))


def _unpack(files: Iterable[Item], depth: int = _DEPTH) -> tuple[list[Item], list[LeakFinding]]:
    """Return files and what is packed in them, and what could not be looked into."""
    items: list[Item] = []
    findings: list[LeakFinding] = []
    for item in files:
        items.append(item)
        try:
            members = members_of(item) if depth else []
        except SealedError as error:
            findings.append(_sealed(item, error))
            continue
        inner = _unpack(members, depth - 1) if members else ([], [])
        items += inner[0]
        findings += inner[1]
    return items, findings


def _lone(items: list[Item]) -> Iterator[Item]:
    """Yield the files that are not one of many alike, and of many alike the first and largest."""
    alike: dict[str, list[Item]] = defaultdict(list)
    for item in items:
        parts = item.name.split("/")
        pattern = "/".join(_VARYING.sub("#", part) for part in parts[:-1])
        alike[f"{pattern}/{item.suffix or parts[-1]}"].append(item)
    for group in alike.values():
        if len(group) <= _MANY_ALIKE:
            yield from group
            continue
        usual = sorted(item.size for item in group)[len(group) // 2]
        yield from (item for n, item in enumerate(group) if n < 5 or item.size > 4 * usual)


def _sealed(item: Item, error: SealedError) -> LeakFinding:
    return LeakFinding(LeakKind.UNKNOWN, item.name, str(error), severity=Severity.NOTE)


def _is_table(card: Card, name: str) -> bool:
    target = card.target
    tables = {card.sample_submission}
    if target is not None:
        tables |= {target.train_file, target.test_file}
    return name in tables


def _private_digests(folder: Path) -> dict[str, int]:
    paths = (path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    return {_digest_of(path): path.stat().st_size for path in paths}


def _table_digests(card: Card, public: Path) -> set[str]:
    names = [card.sample_submission]
    if card.target is not None:
        names += [card.target.train_file, card.target.test_file]
    return {_digest_of(public / name) for name in names if (public / name).is_file()}


def _digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _copy_by_size(item: Item, private: dict[str, int]) -> Iterator[LeakFinding]:
    if item.size in private.values():
        with item.open() as file:
            digest = hashlib.sha256()
            while block := file.read(1 << 22):
                digest.update(block)
        if digest.hexdigest() in private:
            yield _private_copy(item)
            return
    text = "it is too large to be looked at"
    yield LeakFinding(LeakKind.UNKNOWN, item.name, text, severity=Severity.NOTE)


def _private_copy(item: Item) -> LeakFinding:
    return LeakFinding(LeakKind.ANSWERS_IN_FILE, item.name, "it is a copy of a private file")


def _judge(
    item: Item,
    data: bytes,
    private: dict[str, int],
    known: set[str],
    evidence: LeakEvidence | None,
) -> Iterator[LeakFinding]:
    digest = _digest(data)
    if digest in private:
        yield _private_copy(item)
    elif digest not in known and evidence is not None and data:
        yield from find_answers(item.name, data, item.suffix, evidence)


def _copies(
    families: dict[str, attached.Family], items: list[Item], evidence: LeakEvidence
) -> Iterator[LeakFinding]:
    """Yield whether files of test rows stand among the other files, byte for byte."""
    of_rows = {item.name: item for family in families.values() for _, item, _ in family}
    suffixes = {item.suffix for item in of_rows.values()}
    by_size: dict[int, list[Item]] = defaultdict(list)
    for item in items:
        if item.suffix in suffixes and item.size:
            by_size[item.size].append(item)
    chosen = list(of_rows.values())[:_MOST_COMPARED]
    alike = {other.name: other for item in chosen for other in by_size[item.size][:50]}
    alike = {name: item for name, item in alike.items() if len(by_size[item.size]) > 1}
    # An archive of files that stand beside it holds no others.
    plain = {name.rpartition("/")[2] for name in alike if "!" not in name}
    alike = {
        name: item
        for name, item in alike.items()
        if "!" not in name or re.split(r"[/!]", name)[-1] not in plain
    }
    digests = {name: _digest(item.read()) for name, item in alike.items()}
    counts = Counter(digests.values())
    copied = sum(counts[digests[item.name]] > 1 for item in chosen if item.name in digests)
    share = copied / max(len(chosen), 1)
    if share >= _NOTABLE_COPIES:
        severity = Severity.LEAK if share >= _TOO_MANY_COPIES else Severity.NOTE
        text = "files of test rows stand among the train files"
        place = evidence.target.train_file
        yield LeakFinding(
            LeakKind.OVERLAP, place, text, f"{share:.1%} of {len(chosen)} files", severity
        )
