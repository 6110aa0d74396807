"""A raw folder is looked over before any work, and what is wrong with it is one line."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from reward_server.errors import SetupError
from reward_server.tasks.preparation.prepare import prepare_task
from reward_server.tasks.preparation.raw_folder import find_raw_files, identify
from reward_server.tasks.sdk.raw import read_raw, read_raw_tree
from tests.integration.tasks import tiny

NAMES = ("train.csv", "images/*.jpg", "train/*/geometry.xyz")


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """Return Kaggle's files unpacked."""
    folder = tmp_path / "raw"
    for name in ("train.csv", "images/1.jpg", "images/2.jpg", "train/1/geometry.xyz"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("content")
    return folder


def pack(raw: Path, name: str, archive: str) -> None:
    """Put a file or a folder into an archive, with its name, and take it away."""
    whole = raw / name
    files = [whole] if whole.is_file() else sorted(whole.rglob("*.*"))
    with zipfile.ZipFile(raw / archive, "w") as packed:
        packed.writestr("__MACOSX/._train.csv", "debris")
        for file in files:
            packed.write(file, file.relative_to(raw))
            file.unlink()


def named(found: tuple[Path, ...], raw: Path) -> list[str]:
    return [path.relative_to(raw).as_posix() for path in found]


def test_unpacked_files_are_found(raw: Path) -> None:
    assert named(find_raw_files(raw, NAMES), raw) == [
        *("train.csv", "images/1.jpg", "images/2.jpg", "train/1/geometry.xyz")
    ]


@pytest.mark.parametrize(
    ("name", "archive"),
    [
        ("train.csv", "train.csv.zip"),
        ("train.csv", "train.zip"),
        ("train.csv", "everything.zip"),
        ("images", "images.zip"),
        ("train", "train.zip"),
    ],
)
def test_packed_files_are_found(raw: Path, name: str, archive: str) -> None:
    pack(raw, name, archive)
    assert archive in named(find_raw_files(raw, NAMES), raw)


def test_a_file_in_a_folder_of_its_own_name_is_found(raw: Path) -> None:
    (raw / "train.csv").rename(raw / "kept")
    (raw / "train.csv").mkdir()
    (raw / "kept").rename(raw / "train.csv" / "train.csv")
    assert "train.csv/train.csv" in named(find_raw_files(raw, NAMES), raw)


def test_an_archive_that_a_card_names_may_be_unpacked(raw: Path) -> None:
    assert len(find_raw_files(raw, ["train.csv.zip", "images.zip"])) == 3


@pytest.mark.parametrize("name", NAMES)
def test_missing_raw_files_are_named_with_the_present_ones(raw: Path, name: str) -> None:
    for path in [raw / name] if "*" not in name else raw.glob(name):
        path.unlink()
    (raw / "other.txt").touch()
    with pytest.raises(SetupError) as raised:
        find_raw_files(raw, NAMES)
    text = str(raised.value)
    assert text.startswith(f"the raw file {name} is missing from {raw}")
    assert "other.txt" in text
    assert "images/" in text
    assert "\n" not in text


def test_the_list_of_present_files_is_bounded(tmp_path: Path) -> None:
    for number in range(500):
        (tmp_path / f"file{number:03}").touch()
    with pytest.raises(
        SetupError, match=r"raw files train\.csv, .* are missing.*488 more"
    ) as raised:
        find_raw_files(tmp_path, NAMES)
    assert len(str(raised.value)) < 500


def test_macos_debris_in_an_archive_is_ignored(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "train.csv.zip", "w") as packed:
        packed.writestr("__MACOSX/train.csv", "debris")
    with pytest.raises(SetupError, match=r"train\.csv is missing"):
        find_raw_files(tmp_path, ["train.csv"])


def test_a_broken_archive_is_named(raw: Path) -> None:
    pack(raw, "train.csv", "train.csv.zip")
    content = (raw / "train.csv.zip").read_bytes()
    (raw / "train.csv.zip").write_bytes(content[:-30])
    with pytest.raises(SetupError, match=r"train\.csv\.zip is not a readable archive"):
        find_raw_files(raw, NAMES)


def test_a_damaged_member_is_named_by_its_archive(raw: Path) -> None:
    pack(raw, "train.csv", "train.csv.zip")
    pack(raw, "images", "images.zip")
    (raw / "images" / "1.jpg").unlink(missing_ok=True)
    (raw / "images").rmdir()
    for archive in ("train.csv.zip", "images.zip"):
        content = (raw / archive).read_bytes()
        (raw / archive).write_bytes(content.replace(b"content", b"CONTENT"))
    with pytest.raises(SetupError, match=r"train\.csv\.zip is not readable"):
        read_raw(raw, "train.csv")
    with pytest.raises(SetupError, match=r"images\.zip is not readable"):
        list(read_raw_tree(raw, "images", ".jpg"))


def test_a_raw_path_that_is_not_a_folder_is_refused(raw: Path) -> None:
    with pytest.raises(SetupError, match="is not a folder"):
        find_raw_files(raw / "train.csv", NAMES)
    with pytest.raises(SetupError, match="does not exist"):
        find_raw_files(raw / "nowhere", NAMES)


def test_an_unreadable_raw_folder_is_refused(raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(SetupError, match="cannot be read: Permission denied"):
        find_raw_files(raw, NAMES)


def test_a_wrong_raw_folder_is_refused_before_any_work(tmp_path: Path) -> None:
    folder = tiny.write_task(tmp_path / "tasks")
    (tmp_path / "raw").mkdir()
    with pytest.raises(SetupError, match=r"train\.csv is missing from .*raw.*: it is empty"):
        prepare_task(folder, tmp_path / "data", raw=tmp_path / "raw")
    assert tiny.calls(folder) == []


def test_a_raw_folder_is_identified_by_its_files(raw: Path) -> None:
    found = find_raw_files(raw, NAMES)
    before = identify(raw, found)
    (raw / "unrelated").touch()
    assert identify(raw, find_raw_files(raw, NAMES)) == before
    (raw / "images" / "3.jpg").touch()
    assert identify(raw, find_raw_files(raw, NAMES)) != before
