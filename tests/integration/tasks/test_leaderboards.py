"""Standings on whole leaderboards and on those of which a few marks are known."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_server.errors import SetupError
from reward_server.tasks.base import Source, Task, Thresholds
from reward_server.tasks.folders import BUILT_IN, find_folders, read_card
from reward_server.tasks.leaderboards import (
    Leaderboard,
    PartialLeaderboard,
    find_leaderboard,
    medal_ranks,
    read_leaderboard,
)
from reward_server.tasks.manifest import Manifest, write_manifest
from reward_server.tasks.registry import Registry

if TYPE_CHECKING:
    from pathlib import Path

SPOOKY = BUILT_IN / "spooky_author_identification"
SPOOKY_ID = "spooky-author-identification"
CARD = read_card(SPOOKY)

coarse = st.integers(0, 40).map(lambda number: number / 10)
boards = st.builds(
    Leaderboard.of, st.lists(coarse, min_size=1, max_size=60), higher_is_better=st.booleans()
)


@pytest.mark.parametrize(
    ("teams", "ranks"),
    [
        (1, (1, 1, 1)),
        (9, (1, 1, 3)),
        (50, (5, 10, 20)),
        (99, (9, 19, 39)),
        (100, (10, 20, 40)),
        (249, (10, 49, 99)),
        (250, (10, 50, 100)),
        (462, (10, 50, 100)),
        (999, (11, 50, 100)),
        (1000, (12, 50, 100)),
        (1241, (12, 62, 124)),
        (2706, (15, 135, 270)),
    ],
)
def test_medals_go_to_ranks_by_the_number_of_teams(teams: int, ranks: tuple[int, int, int]) -> None:
    assert medal_ranks(teams) == ranks


@pytest.mark.parametrize("higher", [True, False])
def test_a_threshold_wins_its_medal_and_no_other(higher: bool) -> None:  # noqa: FBT001
    board = Leaderboard.of(range(1, 101), higher_is_better=higher)
    marks = board.thresholds
    assert [board.medal(score) for score in (marks.gold, marks.silver, marks.bronze)] == [
        "gold",
        "silver",
        "bronze",
    ]
    worse = -1 if higher else 1
    beyond = [marks.gold + worse, marks.silver + worse, marks.bronze + worse]
    assert [board.medal(score) for score in beyond] == ["silver", "bronze", None]


def test_above_the_median_is_strictly_above() -> None:
    board = Leaderboard.of([1, 2, 3, 4], higher_is_better=True)
    at = [board.standing(score, wins_medals=True).above_median for score in (2.49, 2.5, 2.51)]
    assert at == [False, False, True]


@given(boards, coarse)
def test_a_standing_counts_better_and_worse_teams(board: Leaderboard, score: float) -> None:
    higher, teams = board.higher_is_better, len(board.scores)
    better = sum(team > score if higher else team < score for team in board.scores)
    tied = sum(team == score for team in board.scores)
    found = board.standing(score, wins_medals=True)
    assert (found.position, found.teams, found.exact) == (1 + better, teams, True)
    assert found.percentile == (teams - better - tied) / teams


def test_scores_are_compared_in_the_digits_of_the_leaderboard() -> None:
    coarse = Leaderboard.of([0.0, 0.00791, 0.01526, 0.5], higher_is_better=False)
    assert coarse.medal(3e-6) == "gold"
    assert coarse.position(0.007914) == 2
    fine = Leaderboard.of([1e-7, 2e-7, 3e-7], higher_is_better=False)
    assert [fine.position(score) for score in (1e-7, 1.5e-7, 4e-7)] == [1, 2, 4]


@given(boards)
def test_a_partial_leaderboard_is_exact_at_its_own_unique_scores(board: Leaderboard) -> None:
    known = board.thresholds
    marks = PartialLeaderboard(known, board.higher_is_better)
    ranks = (1, *medal_ranks(known.teams), known.teams)
    scores = (known.best, known.gold, known.silver, known.bronze, known.worst)
    for rank, score in zip(ranks, scores, strict=True):
        if board.scores.count(score) == 1:
            found = marks.standing(score, wins_medals=True)
            assert (found.position, found.percentile) == (rank, (known.teams - rank) / known.teams)
        assert marks.medal(score) == board.medal(score)
        assert not marks.standing(score, wins_medals=True).exact


@given(boards, coarse, coarse)
def test_between_known_scores_a_better_score_never_ranks_lower(
    board: Leaderboard, one: float, other: float
) -> None:
    marks = PartialLeaderboard(board.thresholds, board.higher_is_better)
    worse, better = sorted((one, other), reverse=not board.higher_is_better)
    assert marks.share_beaten(worse) <= marks.share_beaten(better)
    assert marks.position(worse) >= marks.position(better) >= 1
    assert 0 <= marks.share_beaten(worse) <= 1
    assert marks.position(worse) <= board.thresholds.teams + 1


def test_a_partial_leaderboard_covers_best_to_worst() -> None:
    board = find_leaderboard(CARD, [])
    assert isinstance(board, PartialLeaderboard)
    first, last = (board.standing(score, wins_medals=True) for score in (0.001, 40.0))
    assert (first.position, first.percentile, first.medal) == (1, 1.0, "gold")
    assert (last.position, last.percentile, last.medal) == (1242, 0.0, None)
    middle = board.standing(0.41815, wins_medals=True)
    assert (middle.position, middle.above_median) == (621, False)
    assert middle.percentile == pytest.approx(0.5, abs=0.001)


def test_tied_known_scores_are_beaten_only_by_better_scores() -> None:
    known = Thresholds(1000, 0.9, 0.8, 0.8, 0.8, 0.5, 0.1)
    marks = PartialLeaderboard(known, higher_is_better=True)
    assert (marks.position(0.8), marks.share_beaten(0.8)) == (12, 0.9)
    assert marks.share_beaten(0.80001) > 0.987
    assert marks.medal(0.8) == "gold"


@pytest.mark.parametrize("source", list(Source))
def test_only_the_original_data_wins_medals(tmp_path: Path, source: Source) -> None:
    board = Leaderboard.of([0.2, 0.3, 0.4], higher_is_better=False)
    task = Task(CARD, "", SPOOKY, tmp_path, tmp_path, "digest", source, board=board)
    assert task.medal(0.1) == ("gold" if source is Source.RAW else None)
    assert task.medal(None) is None
    standing = task.standing(0.25)
    assert standing is not None
    assert (standing.position, standing.teams) == (2, 3)


def test_the_baseline_is_the_sample_else_the_card_else_the_last_team(tmp_path: Path) -> None:
    board = Leaderboard.of([0.2, 0.3, 0.4], higher_is_better=False)
    task = Task(CARD, "", SPOOKY, tmp_path, tmp_path, "d", Source.TWIN, board=board)
    assert (task.scale.baseline, task.scale.gold, task.scale.ranking) == (0.4, 0.2, board)
    carded = replace(task, card=replace(CARD, baseline=1.1))
    assert carded.scale.baseline == 1.1
    assert replace(carded, sample_score=0.0).scale.baseline == 0.0
    bare = replace(task, board=None)
    assert (bare.scale.baseline, bare.scale.gold, bare.scale.ranking) == (None, None, None)
    assert bare.standing(0.1) is None


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "leaderboard.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_rows_without_a_score_are_left_out_of_a_leaderboard_file(
    tmp_path: Path,
) -> None:
    text = (
        "\ufeffteamId,teamName,submissionDate,score,hasTeamName\r\n"
        '1,"a, ""b""\nc",2018-01-01,0.3,True\r\n2,,2018-01-02, 0.1 ,False\r\n'
        "3,x,2018-01-03,,True\r\n4,y,2018-01-03,nan,True\r\n"
    )
    board = read_leaderboard(write(tmp_path, text), higher_is_better=False)
    assert board.scores == (0.1, 0.3)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
        "team,Score\n1,0.5\n",
        "score,score\n1,0.5\n",
        "team,score\n1,good\n",
        "team,score\n1,inf\n",
        "team,score\n1\n",
        "team,score\n1,0.5,0.6\n",
        'team,score\n"1,0.5\n',
        "team,score\n1,\n",
        b"team,score\n\xff,0.5\n",
    ],
)
def test_an_unreadable_file_is_refused_by_its_name(tmp_path: Path, text: str | bytes) -> None:
    path = write(tmp_path, text)
    with pytest.raises(SetupError, match=str(path)):
        read_leaderboard(path, higher_is_better=True)


def prepared(data_dir: Path, sample_score: float | None = None) -> Path:
    """Write a manifest as if the task had been prepared."""
    folder = data_dir / SPOOKY_ID / "prepared"
    folder.mkdir(parents=True)
    created = datetime.now(UTC)
    manifest = Manifest(1, SPOOKY_ID, Source.RAW, created, "digest", {}, sample_score=sample_score)
    write_manifest(folder, manifest)
    return folder.parent


def test_a_new_leaderboard_file_replaces_the_cards_thresholds(
    tmp_path: Path,
) -> None:
    home = prepared(tmp_path, sample_score=1.09)
    registry = Registry(tmp_path)
    before = registry.get(SPOOKY_ID)
    assert (before.sample_score, before.scale.gold) == (1.09, 0.16506)
    path = write(home, "score\n0.3\n0.2\n")
    after = registry.get(SPOOKY_ID)
    assert after.scale.gold == 0.2
    assert registry.standing(SPOOKY_ID, "digest", 0.2) == after.standing(0.2)
    assert registry.standing(SPOOKY_ID, "other", 0.2) is None
    assert registry.standing("gone", "digest", 0.2) is None
    path.write_text("nothing")
    with pytest.raises(SetupError, match="leaderboard"):
        registry.get(SPOOKY_ID)
    path.unlink()
    assert registry.get(SPOOKY_ID) == before


def test_a_leaderboard_in_the_data_directory_comes_first(tmp_path: Path) -> None:
    folder = tmp_path / "tasks" / "mine"
    folder.mkdir(parents=True)
    (folder / "task.toml").write_text((SPOOKY / "task.toml").read_text().replace("spooky-", "my-"))
    write(folder, "score\n1\n2\n3\n")
    registry = Registry(tmp_path / "data", [folder.parent])
    assert registry.board("my-author-identification") == Leaderboard.of(
        [1, 2, 3], higher_is_better=False
    )
    home = tmp_path / "data" / "my-author-identification"
    home.mkdir(parents=True)
    write(home, "score\n1\n")
    found = registry.board("my-author-identification")
    assert found is not None
    assert found.thresholds.teams == 1


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("gold = 0.16506", "gold = 0.5", "from the best to the worst"),
        ("higher_is_better = false", "higher_is_better = true", "from the best to the worst"),
        ("teams = 1241", "teams = 0", "teams"),
        ("median = 0.41815", "median = nan", "median"),
        ("wall_seconds = 600", "wall_seconds = 600\nbaseline = inf", "baseline"),
    ],
)
def test_unordered_thresholds_are_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    (tmp_path / "task.toml").write_text((SPOOKY / "task.toml").read_text().replace(old, new))
    with pytest.raises(SetupError, match=said):
        read_card(tmp_path)


def test_every_built_in_card_has_thresholds() -> None:
    for folder in find_folders().values():
        card = read_card(folder)
        assert isinstance(find_leaderboard(card, []), PartialLeaderboard)
        assert card.baseline is None or isinstance(card.baseline, float)
