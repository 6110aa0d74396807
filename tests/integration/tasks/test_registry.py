"""Cards are read strictly, and only prepared tasks can be had."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reward_server.errors import RequestError, SetupError
from reward_server.model import ErrorKind
from reward_server.tasks.base import Source, TargetKind
from reward_server.tasks.folders import BUILT_IN, find_folders, read_card
from reward_server.tasks.preparation.prepare import prepare_task
from reward_server.tasks.registry import Registry

if TYPE_CHECKING:
    from pathlib import Path

SPOOKY = BUILT_IN / "spooky_author_identification"
CARD = (SPOOKY / "task.toml").read_text()
MOST_COLUMNS_SHOWN = 20


def write_folder(directory: Path, card: str) -> Path:
    folder = directory / "some_task"
    folder.mkdir(parents=True)
    (folder / "task.toml").write_text(card)
    return folder


def test_the_built_in_cards_are_complete() -> None:
    for task_id, folder in find_folders().items():
        card = read_card(folder)
        assert card.id == task_id
        assert card.thresholds is not None
        assert card.sample_submission in card.public_files
        description = (folder / "description.md").read_text()
        assert f"/workdir/{task_id}/prepared/public" in description
        shown = card.columns if len(card.columns) <= MOST_COLUMNS_SHOWN else card.columns[:4]
        assert ",".join(shown) in description


def test_a_card_reads_as_written() -> None:
    card = read_card(SPOOKY)
    assert (card.wall_seconds, card.memory_bytes, card.disk_bytes) == (600, 4 << 30, 1 << 30)
    assert (card.artifact_bytes, card.higher_is_better) == (64 << 20, False)
    assert card.target is not None
    assert card.target.kind is TargetKind.CLASSES


@pytest.mark.parametrize(
    ("card", "named"),
    [
        (CARD.replace("[target]", "surprise = 1\n[target]"), "surprise"),
        (CARD.replace('kind = "classes"', 'kind = "classes"\nsurprise = 1'), "surprise"),
        (CARD.replace("higher_is_better = false\n", ""), "higher_is_better"),
        (CARD.replace("small = 3000", 'small = "many"'), "small"),
        (CARD.replace('id = "spooky', 'id = "../spooky'), "id must be"),
        ("id = ", "cannot be read"),
    ],
    ids=["unknown key", "unknown nested key", "missing key", "wrong type", "wrong id", "no TOML"],
)
def test_a_wrong_card_is_refused_by_name(tmp_path: Path, card: str, named: str) -> None:
    with pytest.raises(SetupError, match=named):
        read_card(write_folder(tmp_path, card))


def test_a_card_may_ask_for_cores_and_an_end_to_stalls(tmp_path: Path) -> None:
    plain = read_card(write_folder(tmp_path / "plain", CARD))
    assert (plain.cores, plain.stall_seconds) == (1, None)
    asked = "cores = 4\nstall_seconds = 90\n" + CARD
    card = read_card(write_folder(tmp_path / "asked", asked))
    assert (card.cores, card.stall_seconds) == (4, 90.0)
    for wrong in ("cores = 0\n", "stall_seconds = 0\n"):
        with pytest.raises(SetupError):
            read_card(write_folder(tmp_path / wrong[:5], wrong + CARD))


def test_a_folder_elsewhere_joins_the_built_in_ones(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, CARD.replace("spooky-author", "my-author"))
    registry = Registry(tmp_path / "data", [tmp_path])
    assert registry.folder("my-author-identification") == folder
    assert len(registry.cards()) == len(find_folders()) + 1


def test_a_repeated_id_is_refused(tmp_path: Path) -> None:
    write_folder(tmp_path, CARD)
    with pytest.raises(SetupError, match="both in"):
        Registry(tmp_path / "data", [tmp_path])


def test_a_prepared_task_is_served(tmp_path: Path) -> None:
    manifest = prepare_task(SPOOKY, tmp_path)
    registry = Registry(tmp_path)
    task = registry.get("spooky-author-identification")
    assert registry.prepared() == (task,)
    assert (task.source, task.data_digest) == (Source.TWIN, manifest.data_digest)
    assert task.answers.is_file()
    assert task.description.startswith("# Spooky")


@pytest.mark.parametrize(
    ("task_id", "message"),
    [
        ("spooky-author-identification", "not prepared"),
        ("no-such-task", "no such task"),
        ("../spooky-author-identification", "no such task"),
        ("", "no such task"),
    ],
)
def test_a_task_without_data_is_unknown(tmp_path: Path, task_id: str, message: str) -> None:
    with pytest.raises(RequestError, match=message) as raised:
        Registry(tmp_path).get(task_id)
    assert raised.value.kind is ErrorKind.UNKNOWN_TASK
    assert Registry(tmp_path).prepared() == ()
