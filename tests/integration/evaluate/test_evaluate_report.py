"""What is kept and what is made of it, without servers."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from trainer_client.evaluate.folder import (
    DataFacts,
    EvaluationRun,
    read_run,
    resolve_run_id,
    write_run,
)
from trainer_client.evaluate.plan import KINDS, EvaluationPlan, SampleSlot, UsageError
from trainer_client.evaluate.report import make_report
from trainer_client.evaluate.samples import GeneratedSample, SampleJournal, SampleRecord
from trainer_client.evaluate.tables import markdown, show

if TYPE_CHECKING:
    from pathlib import Path

    from trainer_client.evaluate.plan import Kind

PIZZA = "random-acts-of-pizza"
LEAF = "leaf-classification"
PLAN = EvaluationPlan(
    model="m",
    tasks=(PIZZA, LEAF, "own-task"),
    samples=2,
    seeds=2,
    temperature=0.7,
    top_p=1.0,
    max_tokens=1024,
    prompt_tokens=None,
    tokenizer=None,
    prompt_characters=4096,
    wall_seconds=None,
    improve=True,
    run_id="r",
)
FACTS = {
    PIZZA: DataFacts(True, "AUC", "d" * 40, "raw", []),  # noqa: FBT003
    LEAF: DataFacts(False, "log loss", "e" * 40, "twin", []),  # noqa: FBT003
    "own-task": DataFacts(True, "accuracy", "f" * 40, "raw", []),  # noqa: FBT003
}
RUN = EvaluationRun(PLAN, FACTS, {"server": "1"})


def sample(slot: SampleSlot, score: float | None, completion: str | None = "text") -> SampleRecord:
    return SampleRecord(
        **asdict(slot),
        reward=-10.0 if score is None else score,
        score=score,
        valid=score is not None,
        error_kind=None if score is not None else "timeout",
        medal="gold" if score is not None and score > 0.9 else None,
        duration_seconds=1.5,
        solution_id="s",
        parent_id=None,
        data_digest="d",
        scheme="paper",
        finish_reason="stop",
        prompt_tokens=1,
        completion_tokens=2,
        completion=completion,
    )


def fill(
    journal: SampleJournal, task_id: str, seed: int, kind: Kind, *scores: float | None
) -> None:
    for index, score in enumerate(scores):
        slot = SampleSlot(task_id, seed, kind, index)
        journal.add(slot, sample(slot, score))


def test_a_report_by_hand(tmp_path: Path) -> None:
    with closing(SampleJournal(tmp_path, keeps_text=True)) as journal:
        fill(journal, PIZZA, 0, "scratch", 0.60, None)
        fill(journal, PIZZA, 1, "scratch", 0.62, 0.64)
        fill(journal, PIZZA, 0, "improve", 0.66)
        fill(journal, PIZZA, 1, "improve", 0.50, None)
        fill(journal, LEAF, 0, "scratch", 0.3, 0.1)
        journal.add_skipped(SampleSlot(LEAF, 0, "improve", 0), "too long")
        fill(journal, "own-task", 0, "scratch", None, None)
        fill(journal, "own-task", 1, "scratch", None, None)
        report = make_report(RUN, journal, {(LEAF, "no completion"): 2})  # type: ignore[arg-type]
    pizza, leaf, own = report["tasks"]
    assert report["complete"] is False
    assert figures(pizza, "scratch") == pytest.approx((0.75, 0.615, 0.62, -2.035))
    assert figures(pizza, "improve") == pytest.approx((0.75, 0.58, 0.58, -2.045))
    assert figures(pizza, "best_of_both") == pytest.approx((0.75, 0.645, 0.65, -2.02))
    assert pizza["best_of_both"]["best_score"]["standard_error"] == pytest.approx(0.01)
    assert pizza["best_score"] == pizza["best_of_both"]["best_score"]
    assert pizza["rank"] == {"rank": 2, "of": 10}
    assert pizza["unfinished"] == 0
    assert (leaf["rank"], leaf["best_score"]["mean"]) == (None, 0.1)
    assert leaf["best_score"]["standard_error"] is None
    assert leaf["notes"][0] == "twin data: not comparable with the paper"
    assert (leaf["unfinished"], leaf["lost"]) == (3, {"no completion": 2})
    assert leaf["not_improved_on"] == {"too long": 1}
    assert (own["paper"], own["best_score"], own["rank"]) == ([], None, None)
    assert own["errors"]["scratch"] == {"timeout": 4}
    check_shown(report)


def figures(task: dict[str, Any], part: str) -> tuple[float, ...]:
    names = ("share_valid", "mean_score", "best_score", "mean_reward")
    return tuple(task[part][name]["mean"] for name in names)


def check_shown(report: dict[str, Any]) -> None:
    console = Console(width=80)
    with console.capture() as captured:
        show(report, console)
    text = markdown(report)
    for shown in (captured.get(), text):
        assert "rank 2 of 10" in shown
        assert "0.650±0.010" in shown
        assert "lost 2: no completion" in shown
        assert "not improved on 1: too long" in shown
    rows = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("|")]
    first = rows.index("this model")
    assert rows[first - 1] == "Qwen2.5-3B RL"
    assert rows[first + 1] == "GPT-4o AIDE"
    assert "Incomplete: 3 samples are not finished." in text
    json.dumps(report, allow_nan=False)


def test_a_journal_is_read_as_it_was_written(tmp_path: Path) -> None:
    first, second, third = (SampleSlot(PIZZA, 0, "scratch", index) for index in range(3))
    with closing(SampleJournal(tmp_path, keeps_text=False)) as journal:
        for slot in (first, second):
            journal.add_generated(slot, GeneratedSample("text \ud800\u2028", "stop", 1, 2))
        journal.add(first, sample(first, 0.5))
        journal.add_skipped(third, "why")
    with (tmp_path / "samples.jsonl").open("ab") as file:
        file.write(b'{"task_id": "half a li')
    with closing(SampleJournal(tmp_path, keeps_text=False)) as journal:
        assert journal.samples == {first: sample(first, 0.5, completion=None)}
        assert journal.skipped == {third: "why"}
        assert journal.generated == {second: GeneratedSample("text \ud800\u2028", "stop", 1, 2)}
        journal.add(second, sample(second, None))
    assert not (tmp_path / "drawn.jsonl").exists()
    lines = (tmp_path / "samples.jsonl").read_bytes().split(b"\n")
    assert [json.loads(line)["index"] for line in lines[:-1]] == [0, 2, 1]
    assert lines[-1] == b""


@pytest.mark.parametrize("line", ["no JSON", "5", "{}", '{"task_id": 1, "seed": 0}'])
def test_a_foreign_line_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "samples.jsonl").write_text(f"{line}\n")
    with pytest.raises(UsageError, match=r"line 1 of .* cannot be read"):
        SampleJournal(tmp_path, keeps_text=True)


def test_a_folder_knows_its_plan(tmp_path: Path) -> None:
    assert read_run(tmp_path) is None
    named = resolve_run_id(replace(PLAN, run_id=None), None)
    assert (named.run_id or "").startswith("evaluation-")
    write_run(tmp_path, RUN)
    assert read_run(tmp_path) == RUN
    assert resolve_run_id(replace(PLAN, run_id=None), RUN) == PLAN
    changed = replace(PLAN, tasks=(PIZZA,), run_id="s")
    with pytest.raises(UsageError, match=f"tasks is {PIZZA}, before .*; run_id is s, before r"):
        resolve_run_id(changed, RUN)
    (tmp_path / "run.json").write_text("[]")
    with pytest.raises(UsageError, match="cannot be read"):
        read_run(tmp_path)
    (tmp_path / "run.json").unlink()
    (tmp_path / "samples.jsonl").write_text("")
    with pytest.raises(UsageError, match="whose they are is not known"):
        read_run(tmp_path)


def test_every_slot_has_its_own_seed_and_key() -> None:
    plan = replace(PLAN, samples=128, seeds=3)
    places = [place for slot in plan.slots() for place in (slot, slot.improving())]
    assert len(places) == 3 * 3 * 128 * len(KINDS)
    assert len({plan.key_of(place) for place in places}) == len(places)
    seeds = [place.sampling_seed() for place in places]
    assert len(set(seeds)) == len(places)
    assert all(0 <= seed < 1 << 31 for seed in seeds)
