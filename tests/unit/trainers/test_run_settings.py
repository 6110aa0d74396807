"""What a run says about its reward server is read strictly."""

from __future__ import annotations

import pytest

from trainer_client.settings import RunSettings

NODE = {"url": "http://127.0.0.1:8000", "tasks": ["t"], "run_id": "r"}


def test_defaults_are_those_of_the_paper() -> None:
    run = RunSettings.read(NODE)
    assert run.durations.enabled
    assert (run.durations.exponent, run.durations.clip) == (1.0, None)
    assert (run.prompts.improve_fraction, run.prompts.strategy) == (0.5, "previous_step")


@pytest.mark.parametrize(
    ("row", "run_id", "priority"),
    [({}, "r", None), ({"is_validation": 1}, "r/validation", "evaluation")],
)
def test_validation_samples_belong_to_a_run_of_their_own(
    row: dict[str, object], run_id: str, priority: str | None
) -> None:
    run = RunSettings.read(NODE).run()
    submission = run.submission({"task_id": "t", **row}, "text", step=3, name="a/0")
    assert (submission.run_id, submission.priority) == (run_id, priority)
    assert submission.idempotency_key == f"{run_id}/3/a/0"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"url": "127.0.0.1:8000"}, "reward_server.url"),
        ({"tasks": []}, "reward_server.tasks"),
        ({"adress": "x"}, "reward_server.adress"),
        ({"durations": {"clip": 0.5}}, "reward_server.durations.clip"),
        ({"durations": {"mean": "epoch"}}, "reward_server.durations.mean"),
        ({"prompts": {"improve_fraction": 2}}, "reward_server.prompts.improve_fraction"),
        ({"deadline_seconds": 0}, "reward_server.deadline_seconds"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RunSettings.read({**NODE, **change})


def test_a_configuration_without_a_server_is_refused() -> None:
    with pytest.raises(ValueError, match="where is the reward server"):
        RunSettings.read(None)
