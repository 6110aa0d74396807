"""Sizes, names and words of the source tree; import-linter checks the imports."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("reward_server", "trainer_client")
# Programs as models write them are data.
DATA = (
    "tests/unit/instrument/corpus/",
    "tests/unit/instrument/programs/",
    "tests/integration/tasks/ladders/",
    "tests/integration/api/solutions/",
    "tests/data/",
)
MOST_LINES = 400
MOST_FILES = 15
MOST_ROOT_MODULES = 10
# A class name that exists more than once, with the reason why no other name serves.
REPEATED = {
    "InfrastructureError": "both sides of the HTTP contract: both raise it",
    "Submission": "both sides of the HTTP contract: what the client sends is what the server takes",
}
PRIVATE_WORDS = re.compile(
    r"(?<![a-z])(desk|errand|nursery|warden|foresight|keeper|janitor|telling|told_of)(s|ies)?(?![a-z])"
)


def list_files(*folders: str) -> list[Path]:
    found = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return sorted(path for path in found if not name(path).startswith(DATA))


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def public_classes(path: Path) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]


def split_words(text: str) -> str:
    """Return the text in lower case with the parts of `CamelCase` names set apart."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text).lower()


def test_a_public_class_name_exists_once() -> None:
    owners = defaultdict(list)
    for path in list_files(*PACKAGES):
        for class_name in public_classes(path):
            owners[class_name].append(name(path))
    repeated = {key: found for key, found in owners.items() if len(found) > 1}
    assert {key: found for key, found in repeated.items() if key not in REPEATED} == {}
    assert set(REPEATED) <= set(repeated), "an exception that is no longer needed"


def test_no_file_is_too_long() -> None:
    files = list_files(*PACKAGES, "tests", "migrations", "benchmarks")
    lengths = {name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in files}
    assert {path: lines for path, lines in lengths.items() if lines > MOST_LINES} == {}


def test_no_folder_holds_too_many_files() -> None:
    folders = Counter(name(path.parent) for path in list_files(*PACKAGES, "tests", "benchmarks"))
    assert {folder: count for folder, count in folders.items() if count > MOST_FILES} == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_has_few_modules_at_its_root(package: str) -> None:
    modules = [path.name for path in (ROOT / package).glob("*.py") if path.name != "__init__.py"]
    assert len(modules) <= MOST_ROOT_MODULES, modules


def test_private_words_do_not_come_back() -> None:
    found = [
        f"{name(path)}:{number}: {match[0]}"
        for path in list_files(*PACKAGES)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for match in PRIVATE_WORDS.finditer(split_words(line))
    ]
    named = [name(path) for path in list_files(*PACKAGES) if PRIVATE_WORDS.search(path.stem)]
    assert found + named == []


@pytest.mark.parametrize("text", ["class JobDesk:", "_errands = 1", "the keeper", "told_of(x)"])
def test_private_words_are_found_in_names(text: str) -> None:
    assert PRIVATE_WORDS.search(split_words(text))


@pytest.mark.parametrize("text", ["beekeeper", "desktop", "foretelling", "a bookkeeperish"])
def test_other_words_are_left_alone(text: str) -> None:
    assert not PRIVATE_WORDS.search(split_words(text))
