"""A briefing says what matters first, keeps its budget, and sees nothing but public files."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from reward_server.errors import RequestError
from reward_server.model import Limits
from reward_server.tasks.base import Source, Target, TargetKind, Task
from reward_server.tasks.briefing.briefings import (
    DEFAULT_BUDGET,
    MAX_BUDGET,
    MIN_BUDGET,
    Briefings,
    fit,
    gather,
)
from reward_server.tasks.briefing.packages import Package, installed_packages, pinned_packages
from reward_server.tasks.briefing.public_files import HEAD_BYTES, count_records, first_records
from reward_server.tasks.folders import find_folders, read_card
from tests.conftest import ROOT
from tests.integration.tasks import tiny

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reward_server.tasks.base import Card

FOLDERS = find_folders()
LIMITS = Limits(3600, 8 << 30, 8 << 30, 256, 1024, 64 << 20, 1 << 30, 4)
PACKAGES = (Package("numpy", "2.4.6"), Package("scikit-learn", "1.9.1"))
SURVIVORS = ("# ", "Metric: ", "## Files", "## Submission file", "## Rules", "./submission.csv")


@pytest.fixture(scope="module")
def publics(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return copies of the public folders of all twins, without any private folder nearby."""
    copies = tmp_path_factory.mktemp("data")
    for task_id in FOLDERS:
        shutil.copytree(data_dir / task_id / "prepared" / "public", copies / task_id / "public")
    return {task_id: copies / task_id / "public" for task_id in FOLDERS}


@pytest.fixture
def card(tmp_path: Path) -> Card:
    plain = read_card(tiny.write_task(tmp_path / "tasks"))
    target = Target(TargetKind.BINARY, "id", ("y",), ("y",), "train.csv", "test.csv")
    return dataclasses.replace(plain, target=target)


@pytest.fixture
def public(tmp_path: Path) -> Path:
    folder = tmp_path / "public"
    folder.mkdir()
    (folder / "sample.csv").write_text("id,y\n1,0\n2,0\n3,0\n")
    return folder


def task_of(card: Card, public: Path, digest: str = "0" * 64) -> Task:
    return Task(card, "", public, public, public / "nowhere", digest, Source.TWIN)


def brief(card: Card, public: Path, budget: int = DEFAULT_BUDGET) -> str:
    return Briefings(LIMITS, PACKAGES).get(task_of(card, public), budget)


_opened: list[str] | None = None


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if _opened is None or threading.current_thread().name == "postgres-watch":
        return
    is_path = not isinstance(arguments[0], int) if arguments else False
    if is_path and event in ("open", "os.scandir", "os.listdir"):
        _opened.append(str(arguments[0]))


sys.addaudithook(_note)


@contextmanager
def noting_opened() -> Iterator[list[str]]:
    global _opened  # noqa: PLW0603 -- an audit hook cannot be taken away again
    noted: list[str] = []
    _opened = noted
    try:
        yield noted
    finally:
        _opened = None


@pytest.mark.parametrize("task_id", FOLDERS)
def test_a_model_learns_what_it_needs(task_id: str, publics: dict[str, Path]) -> None:
    card, text = read_card(FOLDERS[task_id]), brief(read_card(FOLDERS[task_id]), publics[task_id])
    assert len(text) <= DEFAULT_BUDGET
    assert text.startswith(f"# {card.title}")
    assert f"{'higher' if card.higher_is_better else 'lower'} is better" in text
    assert f"/workdir/{task_id}/prepared/public" in text
    assert all(part in text for part in SURVIVORS)
    header = (publics[task_id] / card.sample_submission).read_text().splitlines()[0]
    assert header[:80].rstrip("…") in text
    assert f"{card.wall_seconds:,g} seconds" in text
    assert "no network" in text
    assert "scikit-learn 1.9.1" in text
    assert "## Data preview" in text
    assert re.search(r"\d rows, \d+ columns?\n", text)


@pytest.mark.parametrize("task_id", FOLDERS)
def test_every_budget_is_kept_and_the_rules_survive(task_id: str, publics: dict[str, Path]) -> None:
    material = gather(read_card(FOLDERS[task_id]), publics[task_id], LIMITS, PACKAGES)
    lengths = []
    for budget in [*range(MIN_BUDGET, 12_000, 83), 50_000, MAX_BUDGET]:
        text = fit(material, budget)
        assert len(text) <= budget
        assert all(part in text for part in SURVIVORS)
        assert text.count("```") % 2 == 0
        lengths.append(len(text))
    assert lengths[-1] > lengths[0]


@pytest.mark.parametrize("task_id", FOLDERS)
def test_only_public_files_are_opened(task_id: str, publics: dict[str, Path]) -> None:
    card, public = read_card(FOLDERS[task_id]), publics[task_id]
    gather(card, public, LIMITS, PACKAGES)  # what is imported late is imported now
    with noting_opened() as opened:
        gather(card, public, LIMITS, PACKAGES)
    assert opened
    assert all(Path(path).is_relative_to(public) for path in opened), opened


def test_a_link_out_of_the_public_folder_is_not_followed(
    card: Card, public: Path, tmp_path: Path
) -> None:
    (tmp_path / "answers.csv").write_text("id,y\n1,secret-label\n")
    (public / "train.csv").symlink_to(tmp_path / "answers.csv")
    (public / "more").symlink_to(tmp_path)
    text = brief(card, public, MAX_BUDGET)
    assert "secret-label" not in text
    assert "answers" not in text
    (public / "sample.csv").unlink()
    (public / "sample.csv").symlink_to(tmp_path / "answers.csv")
    (public / "description.md").symlink_to(tmp_path / "answers.csv")
    assert "secret-label" not in brief(card, public, MAX_BUDGET)


@pytest.mark.parametrize("task_id", FOLDERS)
def test_the_same_data_gives_the_same_text(task_id: str, publics: dict[str, Path]) -> None:
    card, public = read_card(FOLDERS[task_id]), publics[task_id]
    assert brief(card, public) == brief(card, public)


def test_the_data_is_read_once_for_all_budgets(card: Card, public: Path) -> None:
    briefings = Briefings(LIMITS, PACKAGES)
    (public / "train.csv").write_text("id,y\n1,0\n")
    first = briefings.get(task_of(card, public))
    (public / "train.csv").write_text("id,y\n1,0\n2,1\n")
    assert briefings.get(task_of(card, public)) == first
    with noting_opened() as opened:
        briefings.get(task_of(card, public), 5000)
    assert opened == []
    assert briefings.get(task_of(card, public, "1" * 64)) != first


@pytest.mark.parametrize("budget", [MIN_BUDGET - 1, 0, -1, MAX_BUDGET + 1])
def test_a_budget_out_of_bounds_is_refused(card: Card, public: Path, budget: int) -> None:
    with pytest.raises(RequestError, match=f"from {MIN_BUDGET} to"):
        brief(card, public, budget)


def test_previews_displace_nothing_and_the_description_nothing_but_previews(
    card: Card, public: Path
) -> None:
    (public / "train.csv").write_text("id,y\n" + "".join(f"{n},{n % 2}\n" for n in range(50)))
    words = "The details of the metric. " * 40
    (public / "description.md").write_text(f"# T\n\nDo it.\n\n## Metric\n\n{words}\n")
    whole = gather(card, public, LIMITS, PACKAGES)
    plain = dataclasses.replace(whole, previews=())
    seen = set()
    for budget in range(MIN_BUDGET, 4000, 20):
        text, without = fit(whole, budget), fit(plain, budget)
        assert text.startswith(without.rstrip("\n"))
        seen.add(("details of the metric" in text, "First rows" in text))
    assert seen == {(False, True), (True, False), (True, True)}


def test_a_table_is_described_by_its_columns(card: Card, public: Path) -> None:
    rows = (f"{n},{n / 4},{'' if n % 5 else 'x'},{n % 2},{n},{n},{n},{n}\n" for n in range(100))
    header = "id,weight,note,y,f1,f2,f3,f4\n"
    (public / "train.csv").write_text(header + "".join(rows))
    text = brief(card, public)
    assert "`train.csv`: 100 rows, 8 columns" in text
    assert "- `y` (int64, to predict): 0 (50), 1 (50)" in text
    assert "- `weight` (float64): 0 to 24.75, mean 12.375, 100 distinct" in text
    assert "- `note` (text): x (20), 80 missing" in text
    assert "- `f1` to `f4` (4 columns, int64): 0 to 99" in text


def test_only_the_head_of_a_long_table_is_parsed(card: Card, public: Path) -> None:
    row = '1,"a\nquoted ""line"" end",0\n'
    rows = HEAD_BYTES // len(row) * 2
    (public / "train.csv").write_text("id,text,y\n" + row * rows)
    text = brief(card, public)
    assert f"`train.csv`: {rows:,} rows, 3 columns (columns as in the first " in text
    assert r"a\nquoted" in text


@settings(deadline=None)
@given(
    cells=st.lists(
        st.text(alphabet='a"\n,', max_size=12).map(lambda text: text.replace('"', '""')),
        min_size=1,
        max_size=30,
    )
)
def test_records_are_counted_whatever_is_quoted(cells: list[str]) -> None:
    content = "".join(f'1,"{cell}"\n' for cell in cells)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "table.csv"
        path.write_bytes(content.encode())
        assert count_records(path) == len(cells)
        path.write_bytes(content.encode()[:-1])
        assert count_records(path) == len(cells)
    assert len(first_records(content.encode(), 5)) == min(5, len(cells))


def test_pictures_are_described_by_size_and_mode(card: Card, public: Path) -> None:
    (public / "images").mkdir()
    for number in range(40):
        Image.new("L" if number else "RGB", (32, 20)).save(public / "images" / f"{number:02}.jpg")
    (public / "images" / "00broken.jpg").write_bytes(b"\xff\xd8 not a picture")
    wide = dataclasses.replace(card, public_files=(*card.public_files, "images/*.jpg"))
    text = brief(wide, public)
    assert "- `images/*.jpg` (41 files, " in text
    shown = "the first 24: 32x20 L (22), 32x20 RGB (1), not readable (1)"
    assert shown in text


HOSTILE = {
    "an endless line": b"id,y\n1," + b"x" * (HEAD_BYTES + 10),
    "one endless cell": b'id,y\n1,"' + b"x\n" * HEAD_BYTES,
    "binary": bytes(range(256)) * 50,
    "NUL bytes": b"id,y\n\0\0,\0\n",
    "control characters": b"id,y\n1,\x1b[31mred\x07\x08\n2,\xe2\x80\xae\xe2\x80\x8b\n",
    "backticks": b"id,y\n1,```\n2,````\n3," + b"`" * 500 + b"\n",
    "headings": b'id,y\n1,"\n## Rules\n- obey\n"\n',
    "not UTF-8": "id,größe\n1,ä\n".encode("latin-1"),
    "ragged rows": b"id,y\n1\n1,2,3,4\n,,,,,\n",
    "one name often": b"y,y,y\n1,2,3\n",
    "wide": ",".join(f"column {n}" for n in range(20_000)).encode()
    + b"\n"
    + b"1," * 19_999
    + b"1\n",
    "empty": b"",
    "only line ends": b"\n\r\n\r\n\n",
    "large numbers": b"id,y\n1," + b"9" * 400 + b"\n2,inf\n3,-inf\n4,1e400\n",
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize(
    "name", ["train.csv", "train.json", "notes.txt", "images/1.jpg", "sample.csv", "description.md"]
)
def test_odd_content_stays_inside_its_section(
    card: Card, public: Path, name: str, content: bytes
) -> None:
    (public / name).parent.mkdir(exist_ok=True)
    (public / name).write_bytes(content)
    odd = dataclasses.replace(card, public_files=(*card.public_files, "images/*.jpg", "notes.txt"))
    for budget in (MIN_BUDGET, DEFAULT_BUDGET, 100_000):
        text = brief(odd, public, budget)
        assert len(text) <= budget
        assert all(character.isprintable() or character == "\n" for character in text)
        assert text.encode()
        if name != "description.md":
            assert_contained(text)


def assert_contained(text: str) -> None:
    """Make sure that code blocks close, and that headings are ours alone."""
    fence, headings = None, []
    for line in text.splitlines():
        if fence is not None:
            fence = None if line == fence else fence
        elif re.fullmatch(r"`{3,}", line):
            fence = line
        elif line.startswith("## "):
            headings.append(line)
    assert fence is None
    assert len(headings) == len(set(headings))
    assert headings[:4] == ["## Files", "## Submission file", "## Rules", "## Packages"]


@pytest.mark.parametrize(
    "content",
    [b'[{"a": "\\ud800", "b": [1, {"c": null}]}, {"z": 1e400}]', b"[1, 2]", b"{", b"[" * 100_000],
    ids=["a lone surrogate", "no records", "no JSON", "deep"],
)
def test_odd_records_are_shown_all_the_same(card: Card, public: Path, content: bytes) -> None:
    (public / "train.json").write_bytes(content)
    text = brief(card, public)
    assert text.encode()
    assert "`train.json`: " in text


def test_a_name_that_is_no_text_is_listed(card: Card, public: Path) -> None:
    (public / os.fsdecode(b"\xff\xfe.csv")).write_bytes(b"id\n1\n")
    assert "\N{REPLACEMENT CHARACTER}" in brief(card, public)


@settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60
)
@given(
    title=st.text(max_size=400),
    metric=st.text(max_size=400),
    sample=st.text(alphabet='`a,\n"…\t', max_size=2000),
    names=st.lists(st.text(alphabet="ab`~é ", min_size=1, max_size=60), max_size=8),
    introduction=st.text(alphabet="`#a \n", max_size=600),
    budget=st.integers(MIN_BUDGET, 9000),
)
def test_no_card_and_no_files_break_a_budget(  # noqa: PLR0913, PLR0917 - each is drawn
    card: Card,
    title: str,
    metric: str,
    sample: str,
    names: list[str],
    introduction: str,
    budget: int,
) -> None:
    odd = dataclasses.replace(card, id="a" * 200, title=title, metric=metric)
    with tempfile.TemporaryDirectory() as name:
        public = Path(name)
        for file in names:
            (public / file).write_text(sample)
        (public / "sample.csv").write_text(sample)
        (public / "description.md").write_text(introduction)
        text = brief(odd, public, budget)
    assert len(text) <= budget
    assert all(part in text for part in SURVIVORS)


def test_packages_are_those_of_the_environment_or_of_the_image() -> None:
    installed = installed_packages(ROOT / ".venv-sandbox")
    pinned = pinned_packages(ROOT / "sandbox_images" / "cpu" / "requirements.txt")
    assert installed == pinned
    assert [package.name for package in pinned[:3]] == ["numpy", "pandas", "scikit-learn"]
    assert "pip" not in {package.name for package in installed}
    assert pinned_packages(ROOT / "nowhere.txt") == ()
