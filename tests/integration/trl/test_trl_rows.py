"""Rows for TRL's trainers, and the prompts that a real server gives for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.trl.training import tokenizer
from tests.integration.verl.served import TASK, Served, serving
from trainer_client.integrations.trl.rows import ChatTokens, TaskPrompts
from trainer_client.settings import RunPromptSettings, RunSettings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MOST = 1024
OTHER = "leaf-classification"


@pytest.fixture(scope="module")
def served(data_dir: Path) -> Iterator[Served]:
    """Serve with a few solutions of step 1 in two tasks; the last test ends it."""
    with serving(data_dir) as one:
        for mark in range(4):
            one.score("rows", 1, mark)
        one.score("rows", 1, 9, OTHER)
        yield one


def settings_for(served: Served, fraction: float) -> RunSettings:
    prompts = RunPromptSettings(improve_fraction=fraction, epoch_rows=6, validation_rows=2)
    return RunSettings(url=served.url, tasks=(TASK, OTHER), run_id="rows", prompts=prompts)


def make(served: Served, models: Path, fraction: float = 1.0) -> TaskPrompts:
    return TaskPrompts(settings_for(served, fraction), tokenizer(models), MOST)


def parents(rows: list[dict[str, Any]]) -> list[str | None]:
    return [row["parent_id"] for row in rows]


def test_rows_alternate_between_tasks_and_are_from_scratch(served: Served, models: Path) -> None:
    prompts = make(served, models)
    rows = prompts.rows()
    assert rows["task_id"][:] == [TASK, OTHER] * 3
    assert set(rows["parent_id"]) == {None}
    assert [message["role"] for message in rows[0]["prompt"]][-1] == "user"
    assert rows[0]["prompt"] != rows[1]["prompt"]
    assert set(rows["is_validation"]) == {False}
    validation = prompts.validation_rows()
    assert (len(validation), set(validation["is_validation"])) == (2, {True})


def test_prompts_are_those_of_their_tasks(served: Served, models: Path) -> None:
    count = ChatTokens(tokenizer(models))
    drawn = make(served, models).draw([TASK, OTHER, TASK], 2)
    tasks = [served.http.get(f"/v1/solutions/{one}").json()["task_id"] for one in parents(drawn)]
    assert tasks == [TASK, OTHER, TASK]
    assert all(0 < count(row["prompt"]) <= MOST for row in drawn)


def test_a_resumed_step_gets_the_same_prompts(served: Served, models: Path) -> None:
    first, resumed = make(served, models), make(served, models)
    drawn = first.draw([TASK] * 4, 2)
    assert resumed.draw([TASK] * 4, 2) == drawn
    again = [parents(first.draw([TASK] * 4, 2)) for _ in range(5)]
    assert any(one != parents(drawn) for one in again)


def test_the_first_step_has_nothing_to_improve_on(served: Served, models: Path) -> None:
    assert parents(make(served, models).draw([TASK, OTHER], 1)) == [None, None]


def test_an_unknown_task_is_reported_before_training(served: Served, models: Path) -> None:
    settings = settings_for(served, 0.5).model_copy(update={"tasks": ("not-here",)})
    with pytest.raises(ValueError, match="not-here"):
        TaskPrompts(settings, tokenizer(models), MOST)


def test_without_the_server_prompts_are_from_scratch(served: Served, models: Path) -> None:
    prompts = make(served, models)
    scratch = [{"prompt": row["prompt"], "parent_id": None} for row in prompts.rows()]
    served.kill()
    assert prompts.draw([TASK, OTHER], 2) == scratch[:2]
    assert prompts.fallbacks == 2
