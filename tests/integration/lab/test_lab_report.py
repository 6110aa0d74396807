"""What the lab keeps of its runs, and what it says about them."""

from __future__ import annotations

import gzip
import json
import math
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.job_client import own_folder
from trainer_client.lab.__main__ import main
from trainer_client.lab.experiments import ARMS, EXPERIMENTS, WHOLE
from trainer_client.lab.program_space import FAMILIES, SLOW_FAMILIES
from trainer_client.lab.records import RESULTS, Record, RunRecords
from trainer_client.lab.report import Pair, draw, figure_of, finding_of, in_short, pair_of

if TYPE_CHECKING:
    from pathlib import Path

DURATIONS, CREDIT, _ = EXPERIMENTS


def step(number: int, **changes: Any) -> dict[str, Any]:
    families = dict.fromkeys(FAMILIES, 0.0) | {SLOW_FAMILIES[0]: 1.0}
    numbers = dict.fromkeys(("mean_reward", "mean_score", "mean_duration", "valid"), 0.5)
    return {"step": number, "best_score": 0.7, "families": families, **numbers, **changes}


def run(arm: str, seed: int, steps: list[dict[str, Any]], best: float | None = 0.7) -> Record:
    scratch = {"best": best, "mean_score": best, "valid": 1.0}
    return Record(arm, seed, tuple(steps), {"best": best, "scratch": scratch})


def test_a_series_knows_what_is_missing() -> None:
    scores = [None, 0.6, None, 0.8, 0.7]
    one = run("arm", 1, [step(i, best_score=score) for i, score in enumerate(scores)])
    assert math.isnan(one.series("best_so_far")[0])
    assert one.series("best_so_far")[1:] == [0.6, 0.6, 0.8, 0.8]
    assert one.late("best_score", 3) == pytest.approx(0.75)
    assert one.series("slow") == [1.0] * 5
    assert one.steps_until("best_score", 0.75) == 4
    assert one.steps_until("valid", 0.9) == 6
    assert math.isnan(run("arm", 1, [step(1)], best=None).best)


def test_a_mean_leaves_out_what_is_not_there() -> None:
    figure = figure_of([1.0, 3.0, math.nan])
    assert (figure.mean, figure.error, figure.seeds) == (2.0, 1.0, 2)
    assert str(figure_of([math.nan])) == "none"


def test_the_page_says_how_far_the_whole_method_came(tmp_path: Path) -> None:
    results = RunRecords(tmp_path / RESULTS, {"steps": 2, "batch": 2}, {})
    for seed, last in ((1, 0.9), (2, 1.0)):
        steps = [step(1, valid=0.1), step(2, valid=last)]
        results.add(run(WHOLE.name, seed, steps), "command")
    assert "from 10% in the first step to 95% in the last" in draw(results, tmp_path).read_text()


def test_only_seeds_that_both_arms_have_are_compared() -> None:
    first, second = DURATIONS.with_it, DURATIONS.without_it
    records = [run(first, 1, [step(1)]), run(first, 2, [step(1)]), run(second, 2, [step(1)])]
    pair = pair_of(DURATIONS, records)
    assert [one.seed for one in (*pair.with_it, *pair.without_it)] == [2, 2]


def test_the_page_says_where_the_paper_is_not_confirmed(tmp_path: Path) -> None:
    results = RunRecords(tmp_path / RESULTS, {"steps": 1, "batch": 2}, {})
    for seed in (1, 2):
        results.add(run(DURATIONS.with_it, seed, [step(1, mean_duration=2.0)], best=0.6), "command")
        results.add(
            run(DURATIONS.without_it, seed, [step(1, mean_duration=1.0)], best=0.8), "command"
        )
    page = draw(results, tmp_path).read_text()
    assert '<td class="yes">yes, 2 of 2 seeds</td>' in page
    assert '<td class="no">no, 0 of 2 seeds</td>' in page
    assert (tmp_path / "durations.png").stat().st_size > 10_000
    assert "With the weights time falls, as theirs did: from 2.0 s" in page
    assert not (tmp_path / "credit.png").exists()


def test_the_page_shows_how_many_runs_learnt_valid_programs(tmp_path: Path) -> None:
    results = RunRecords(tmp_path / RESULTS, {"steps": 2, "batch": 2}, {})
    for seed, valid in ((1, 0.95), (2, 0.85)):
        steps = [step(1, valid=valid), step(2)]
        results.add(run(CREDIT.with_it, seed, steps), "first command")
        results.add(run(CREDIT.without_it, seed, [step(1), step(2)]), "second command")
    page = draw(results, tmp_path).read_text()
    assert "reached by 1 of 2 runs with partial credit and by 0 of 2 without" in page
    assert "commands: first command; second command" in page


@pytest.mark.parametrize(
    ("mine", "other", "verdict", "line"),
    [
        ([1.0, 3.0], [0.9, 2.9], "weakly", "In the paper's direction, not shown"),
        ([3.0, 3.1], [1.0, 1.1], "yes", "As in the paper: execution"),
        ([3.0], [1.0], "weakly", "In the paper's direction, not shown"),
        ([1.0], [2.0], "no", "Not as in the paper: execution"),
        ([math.nan], [2.0], "no", "Not as in the paper: execution"),
    ],
)
def test_a_difference_within_the_errors_is_no_finding(
    mine: list[float], other: list[float], verdict: str, line: str
) -> None:
    arms = (mine, other)
    pair = Pair(*(tuple(run("arm", 1, [step(1, mean_duration=x)]) for x in arm) for arm in arms))
    finding = finding_of(DURATIONS.claims[0], pair)
    assert finding.verdict == verdict
    assert in_short([finding]).startswith(line)


def test_runs_with_another_configuration_are_not_mixed(tmp_path: Path) -> None:
    file, budget, config = tmp_path / RESULTS, {"steps": 1, "batch": 2}, {"arm": {"m": 1}}
    RunRecords(file, budget, config).add(run("arm", 1, [step(1)]), "x")
    again = RunRecords(file, budget, config)
    assert again.has("arm", 1)
    assert not again.has("arm", 2)
    for other in ((budget | {"steps": 2}, config), (budget, {"arm": {"m": 2}})):
        with pytest.raises(ValueError, match="another budget"):
            RunRecords(file, *other)


def test_the_command_trains_every_arm_and_resumes(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["lab"])
    with own_folder(data_dir) as folder:
        words = ["--folder", str(tmp_path), "--data-dir", str(folder), "--steps", "1"]
        main([*words, "--batch", "2"])
        before = (tmp_path / RESULTS).read_bytes()
        main([*words, "--batch", "2"])
    assert (tmp_path / RESULTS).read_bytes() == before
    made = json.loads(gzip.decompress(before))["runs"]
    assert {one["arm"] for one in made} == {arm.name for arm in ARMS}
    assert {one["seed"] for one in made} == {1}
    page = (tmp_path / "report.html").read_text()
    for experiment in EXPERIMENTS:
        assert experiment.title in page
        assert (tmp_path / f"{experiment.name}.png").exists()


def test_one_experiment_can_be_run_alone(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["lab", "--only", CREDIT.name])
    with own_folder(data_dir) as folder:
        words = ["--folder", str(tmp_path), "--data-dir", str(folder), "--first-seed", "3"]
        main([*words, "--steps", "1", "--batch", "2", "--only", CREDIT.name])
    kept = json.loads(gzip.decompress((tmp_path / RESULTS).read_bytes()))
    runs = {(one["arm"], one["seed"]) for one in kept["runs"]}
    assert runs == {(CREDIT.with_it, 3), (CREDIT.without_it, 3)}
    assert kept["commands"] == ["python -m trainer_client.lab --only credit"]
    pictures = {file.stem for file in tmp_path.glob("*.png")}
    assert pictures == {CREDIT.name}
