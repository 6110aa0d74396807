"""What is looked at before a run starts, with a real server and a stand-in for the tokenizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.job_client import KEYS, SLOTS, TASK
from trainer_client import RewardClient
from trainer_client.launch.preflight import (
    Check,
    PlannedRun,
    check_prompts,
    check_run,
    check_server,
)
from trainer_client.settings import RunSettings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LIMIT = 1024


def count(messages: list[dict[str, Any]]) -> int:
    return sum(len(one["content"]) for one in messages) // 4 + 8


def tree(folder: Path, **trainer: object) -> dict[str, Any]:
    return {
        "data": {"train_batch_size": 4, "max_prompt_length": LIMIT},
        "actor_rollout_ref": {"rollout": {"n": 2, "name": "vllm"}},
        "trainer": {
            "default_local_dir": str(folder),
            "device": "cuda",
            "n_gpus_per_node": 8,
            "resume_mode": "auto",
            "v1": {
                "trainer_mode": "colocate_async",
                "colocate_async": {"num_warmup_batches": 1},
            },
            **trainer,
        },
    }


@pytest.fixture
def patient(keyed_url: str) -> Iterator[RewardClient]:
    with RewardClient(keyed_url, KEYS["team"], deadline_seconds=60, outage_seconds=0) as client:
        yield client


def settings(url: str, **fields: object) -> RunSettings:
    return RunSettings.read({"url": url, "tasks": [TASK], "run_id": "new", **fields})


def lines(checks: Iterator[Check]) -> dict[str, Check]:
    return {check.name: check for check in checks}


def test_a_server_that_is_ready_passes(
    keyed_url: str, patient: RewardClient, tmp_path: Path
) -> None:
    found = lines(check_server(PlannedRun(tree(tmp_path), settings(keyed_url), patient)))
    assert {check.state for check in found.values()} == {"ok"}
    assert "database: ok" in found["server"].text
    assert TASK in found["task"].text
    assert f"16 programs at once on {SLOTS} slots" in found["slots"].text


def test_a_deadline_that_the_queue_outlasts_is_a_hint(
    keyed_url: str, patient: RewardClient, tmp_path: Path
) -> None:
    short = settings(keyed_url, deadline_seconds=60)
    found = lines(check_server(PlannedRun(tree(tmp_path), short, patient)))
    assert found["slots"].state == "hint"
    assert "reward_server.deadline_seconds is 60" in found["slots"].text


def test_a_server_that_is_away_is_a_problem(patient: RewardClient, tmp_path: Path) -> None:
    planned = PlannedRun(tree(tmp_path), settings("http://127.0.0.1:9"), patient)
    found = list(check_server(planned))
    assert [check.state for check in found] == ["problem"]
    assert "does not answer" in found[0].text


def test_a_wrong_key_is_a_problem_with_its_remedy(keyed_url: str, tmp_path: Path) -> None:
    with RewardClient(keyed_url, "some-other-key-of-nobody", outage_seconds=0) as stranger:
        found = lines(check_server(PlannedRun(tree(tmp_path), settings(keyed_url), stranger)))
    assert found["key"].state == "problem"
    assert "REWARD_SERVER_API_KEY" in found["key"].text
    assert "task" not in found


def test_an_unprepared_task_is_a_problem_with_a_remedy(
    keyed_url: str, patient: RewardClient, tmp_path: Path
) -> None:
    asked = settings(keyed_url, tasks=[TASK, "no-such-task"])
    found = list(check_server(PlannedRun(tree(tmp_path), asked, patient)))
    problems = [check.text for check in found if check.state == "problem"]
    assert len(problems) == 1
    assert "reward-server tasks prepare no-such-task" in problems[0]


def test_a_run_is_new_then_known(keyed_url: str, patient: RewardClient, tmp_path: Path) -> None:
    planned = PlannedRun(tree(tmp_path), settings(keyed_url, run_id="a/b"), patient)
    [new] = check_run(planned)
    assert (new.state, "is new" in new.text) == ("ok", True)
    patient.score(TASK, code="print(1)", run_id="a/b", step=1)
    [known] = check_run(planned)
    assert (known.state, "no checkpoint" in known.text) == ("hint", True)
    [refused] = check_run(PlannedRun(planned.tree, planned.settings, patient, is_fresh=True))
    assert refused.state == "problem"
    assert "choose --run-id" in refused.text


def test_a_run_resumes_from_a_checkpoint_unless_fresh(
    keyed_url: str, patient: RewardClient, tmp_path: Path
) -> None:
    (tmp_path / "latest_checkpointed_iteration.txt").write_text("40")
    [found] = check_run(PlannedRun(tree(tmp_path), settings(keyed_url), patient))
    assert (found.state, "goes on after step 40" in found.text) == ("ok", True)
    fresh = tree(tmp_path, resume_mode="disable")
    [refused] = check_run(PlannedRun(fresh, settings(keyed_url), patient, is_fresh=True))
    assert refused.state == "problem"


def test_prompts_are_measured_by_the_model_s_tokenizer(
    keyed_url: str, patient: RewardClient, tmp_path: Path
) -> None:
    planned = PlannedRun(tree(tmp_path), settings(keyed_url), patient)
    [found] = check_prompts(planned, lambda: count)
    assert found.state == "ok"
    tokens = int(found.text.partition(": ")[2].partition(" of 1024")[0])
    assert 0 < tokens <= LIMIT
    assert "about 0 characters" not in found.text


def test_a_tokenizer_with_more_tokens_gets_a_shorter_prompt(
    keyed_url: str, patient: RewardClient, tmp_path: Path
) -> None:
    planned = PlannedRun(tree(tmp_path), settings(keyed_url), patient)
    [found] = check_prompts(planned, lambda: lambda messages: 2 * count(messages))
    assert found.state == "ok"


def test_a_prompt_that_fits_in_no_length_is_a_problem(
    keyed_url: str, patient: RewardClient, tmp_path: Path
) -> None:
    small = tree(tmp_path)
    small["data"]["max_prompt_length"] = 400
    planned = PlannedRun(small, settings(keyed_url), patient)
    [found] = check_prompts(planned, lambda: lambda messages: 8 * count(messages))
    assert found.state == "problem"
    assert "more than the 400 of data.max_prompt_length" in found.text


def test_a_tokenizer_the_server_does_not_know_is_a_problem(
    keyed_url: str, patient: RewardClient, tmp_path: Path
) -> None:
    asked = settings(keyed_url, prompts={"tokenizer": "nobody-s"})
    [found] = check_prompts(PlannedRun(tree(tmp_path), asked, patient), lambda: count)
    assert found.state == "problem"
    assert "no such tokenizer" in found.text


def test_a_tokenizer_that_cannot_be_loaded_is_a_problem(
    keyed_url: str, patient: RewardClient, tmp_path: Path
) -> None:
    def load() -> Any:  # noqa: ANN401 - it never returns
        message = "the tokenizer of x/y cannot be loaded"
        raise ValueError(message)

    [found] = check_prompts(PlannedRun(tree(tmp_path), settings(keyed_url), patient), load)
    assert found.state == "problem"
    assert "x/y cannot be loaded; give --model a folder" in found.text
