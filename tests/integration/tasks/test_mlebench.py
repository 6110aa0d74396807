"""Which of MLE-bench's competitions are tasks here, and why the others are not."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import pytest

from reward_server.bootstrap.implementations import make_sandbox
from reward_server.errors import RequestError, SetupError
from reward_server.settings import load_settings
from reward_server.tasks.base import Source, Task
from reward_server.tasks.mlebench import (
    Allowance,
    Competitions,
    find_competitions,
    read_directions,
)
from reward_server.tasks.registry import RefusedCompetition, Registry
from tests.support import competitions as made

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return made.make_package(tmp_path)


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return made.make_data(tmp_path / "data")


def open_registry(
    package: Path, data_dir: Path, directions: Mapping[str, bool] | None = None
) -> Registry:
    allowance = Allowance(wall_seconds=120.0, memory_bytes=1 << 30)
    found = Competitions(find_competitions(package), data_dir, allowance, directions or {})
    return Registry(data_dir.parent / "ours", (), found)


def get(package: Path, data_dir: Path, task_id: str = made.RIVER) -> Task:
    return open_registry(package, data_dir).get(task_id)


def reason(package: Path, data_dir: Path, task_id: str = made.RIVER) -> str:
    registry = open_registry(package, data_dir)
    found = registry.find_competition(task_id)
    assert isinstance(found, RefusedCompetition)
    assert found in registry.refused()
    with pytest.raises(RequestError, match="known but not served"):
        registry.get(task_id)
    return found.reason


def test_a_competition_with_data_is_a_task(package: Path, data_dir: Path) -> None:
    task = get(package, data_dir, made.FRUIT)
    card = task.card
    assert (card.id, card.title, card.metric) == (made.FRUIT, f"About {made.FRUIT}", "accuracy")
    assert (card.wall_seconds, card.memory_bytes) == (120.0, 1 << 30)
    assert card.columns == ("id", "fruit")
    assert card.public_files == ("sample_submission.csv", "train.csv")
    assert card.sample_submission == "sample_submission.csv"
    assert task.source is Source.RAW
    assert task.board is not None
    assert task.board.is_exact
    assert task.public == data_dir / made.FRUIT / "prepared" / "public"
    assert f"/workdir/{made.FRUIT}/prepared/public" in task.description
    assert "Its own words." in task.description
    assert "id,fruit\n" in task.description


def test_unservable_competitions_are_listed_with_reasons(package: Path, data_dir: Path) -> None:
    registry = open_registry(package, data_dir)
    served = [task.card.id for task in registry.prepared()]
    assert served == [made.FRUIT, made.SCALES, made.DEADLY_ID, made.RIVER]
    reasons = {refused.task_id: refused.reason for refused in registry.refused()}
    assert set(reasons) == {made.POINTED, made.CLASHING, made.OTHER_FORMAT}
    assert "Git LFS pointer" in reasons[made.POINTED]
    assert "random_acts_of_pizza" in reasons[made.CLASHING]
    assert "not a .csv file" in reasons[made.OTHER_FORMAT]
    publics = registry.public_folders()
    assert publics == tuple(data_dir / task_id / "prepared" / "public" for task_id in served)


def test_a_task_of_a_folder_wins_over_a_competition(package: Path, data_dir: Path) -> None:
    registry = open_registry(package, data_dir)
    assert not registry.is_competition(made.CLASHING)
    assert registry.folder(made.CLASHING).name == "random_acts_of_pizza"
    with pytest.raises(RequestError, match="not prepared"):
        registry.get(made.CLASHING)


def test_an_unknown_competition_is_an_unknown_task(package: Path, data_dir: Path) -> None:
    for task_id in ("nothing", "../river-levels", ""):
        with pytest.raises(RequestError, match="no such task"):
            get(package, data_dir, task_id)


@pytest.mark.parametrize(
    ("leaderboard", "expected"),
    [
        (made.RISING, True),
        (made.FALLING, False),
        ("score\n0.5\n", "does not tell"),
        ("score\n0.5\n0.6\n0.5\n", "does not tell"),
        ("score\n\n", "no column of scores"),
        ("points\n1\n2\n", "no column of scores"),
        ("score\nnan\n1\n", "without a score"),
        (made.POINTER, "Git LFS pointer"),
        (None, "missing"),
    ],
)
def test_the_direction_comes_from_the_leaderboards_ends(
    package: Path, data_dir: Path, leaderboard: str | None, expected: object
) -> None:
    made.add(package, "some-id", made.ERROR, leaderboard)
    made.write(data_dir, "some-id", "id,level\n1,1\n", "id,level\n1,2\n")
    if isinstance(expected, bool):
        assert get(package, data_dir, "some-id").card.higher_is_better is expected
    else:
        text = reason(package, data_dir, "some-id")
        assert str(expected) in text
        assert "REWARD_SERVER_MLEBENCH__DIRECTIONS" in text


def test_a_given_direction_wins_over_the_leaderboard(
    package: Path, data_dir: Path, tmp_path: Path
) -> None:
    file = tmp_path / "directions.toml"
    file.write_text(f'{made.POINTED} = "lower"\n{made.FRUIT} = "lower"\n')
    registry = open_registry(package, data_dir, read_directions(file))
    for task_id in (made.POINTED, made.FRUIT):
        assert registry.get(task_id).card.higher_is_better is False
    assert registry.get(made.POINTED).board is None


@pytest.mark.parametrize("text", ['some-id = "up"', "some-id = true", "some-id = ["])
def test_an_invalid_direction_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "directions.toml"
    file.write_text(text)
    with pytest.raises(SetupError, match=r"directions\.toml"):
        read_directions(file)


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("  name: mean-absolute-error\n", "", "grader.name"),
        ("dataset:", "datasets:", "dataset"),
        ("id: river-levels", "id: other", "that of other"),
        ("id: river-levels", "id: [", "cannot be read"),
    ],
)
def test_a_wrong_config_is_a_reason(
    package: Path, data_dir: Path, old: str, new: str, named: str
) -> None:
    config = package / "competitions" / made.RIVER / "config.yaml"
    config.write_text(config.read_text().replace(old, new, 1))
    assert named in reason(package, data_dir)


@pytest.mark.parametrize("gone", ["private/test.csv", "public/sample_submission.csv"])
def test_partly_prepared_data_is_a_reason(package: Path, data_dir: Path, gone: str) -> None:
    (data_dir / made.RIVER / "prepared" / gone).unlink()
    assert gone in reason(package, data_dir)


def test_a_sample_may_be_private(package: Path, data_dir: Path) -> None:
    config = package / "competitions" / made.RIVER / "config.yaml"
    config.write_text(config.read_text().replace("public/sample", "private/sample"))
    prepared = data_dir / made.RIVER / "prepared"
    (prepared / "public/sample_submission.csv").rename(prepared / "private/sample_submission.csv")
    assert get(package, data_dir).card.sample_submission == "sample_submission.csv"


def test_the_digest_follows_answers_sample_and_the_list_of_public_files(
    package: Path, data_dir: Path
) -> None:
    registry, prepared = open_registry(package, data_dir), data_dir / made.RIVER / "prepared"
    digests = [registry.get(made.RIVER).data_digest]
    assert get(package, data_dir).data_digest == digests[0]
    for change in (
        lambda: (prepared / "private/test.csv").write_text("id,level\n1,1.0\n2,2.5\n3,4.1\n"),
        lambda: (prepared / "public/sample_submission.csv").write_text("id,level\n1,3\n"),
        lambda: (prepared / "public/new.csv").write_text("id\n"),
        (prepared / "public/new.csv").unlink,
    ):
        change()
        digests.append(registry.get(made.RIVER).data_digest)
    assert len(set(digests[:4])) == 4
    assert digests[4] == digests[2]


def test_public_files_are_not_read_for_the_digest(package: Path, data_dir: Path) -> None:
    before = get(package, data_dir).data_digest
    large = data_dir / made.RIVER / "prepared/public/train.csv"
    text = large.read_text()
    large.unlink()
    large.write_text(text.upper())
    assert get(package, data_dir).data_digest == before


def test_public_data_that_programs_cannot_read_is_a_reason(package: Path, data_dir: Path) -> None:
    public = data_dir / made.RIVER / "prepared" / "public"
    (public / "images").mkdir()
    closed = public / "images" / "1.png"
    closed.write_bytes(b"1")
    closed.chmod(0o600)
    assert reason(package, data_dir).endswith(f"chmod -R o+rX {public}")
    closed.chmod(0o644)
    assert get(package, data_dir).card.public_files[0] == "images/*"
    (public / "images").chmod(0o700)
    public.chmod(0o755)
    (public / "new").touch()
    assert "images is closed" in reason(package, data_dir)


@pytest.mark.parametrize("target", ["../private/test.csv", "/etc/passwd", "nowhere"])
def test_a_link_out_of_the_public_folder_is_a_reason(
    package: Path, data_dir: Path, target: str
) -> None:
    (data_dir / made.RIVER / "prepared" / "public" / "link.csv").symlink_to(target)
    assert "link.csv is a link" in reason(package, data_dir)


def test_a_link_within_the_public_folder_is_fine(package: Path, data_dir: Path) -> None:
    (data_dir / made.RIVER / "prepared" / "public" / "link.csv").symlink_to("train.csv")
    assert "link.csv" in get(package, data_dir).card.public_files


def test_the_package_is_found_without_being_imported(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (package / "__init__.py").write_text("raise RuntimeError")
    monkeypatch.syspath_prepend(package.parent)
    assert find_competitions()[made.RIVER] == package / "competitions" / made.RIVER


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SetupError, match="has no folder competitions"):
        find_competitions(tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(SetupError, match="REWARD_SERVER_MLEBENCH__PACKAGE"):
        find_competitions()


def test_mle_bench_is_off_unless_a_setting_enables_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert load_settings().mlebench is None
    monkeypatch.setenv("REWARD_SERVER_MLEBENCH__PACKAGE", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    chosen = load_settings().mlebench
    assert chosen is not None
    assert chosen.data_dir == tmp_path / "mle-bench" / "data"


def test_a_server_in_a_container_mounts_only_what_is_below_its_data(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("REWARD_SERVER_SANDBOX__KIND", "docker")
    monkeypatch.setenv("REWARD_SERVER_SANDBOX__HOST_DATA_DIR", "/srv/data")
    monkeypatch.setenv("REWARD_SERVER_MLEBENCH__DATA_DIR", str(tmp_path / "ours" / "mle-bench"))
    make_sandbox(load_settings(data_dir=tmp_path / "ours"))
    with pytest.raises(SetupError, match="is not below"):
        make_sandbox(load_settings(data_dir=tmp_path / "others"))
