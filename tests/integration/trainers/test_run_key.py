"""The key of a run's clients, against a server with keys."""

from __future__ import annotations

import pytest

from tests.support.job_client import KEYS, TASK
from trainer_client import RequestRefusedError
from trainer_client.run import API_KEY, Run


def test_the_key_is_taken_from_the_environment(
    keyed_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run.from_environment(url=keyed_url)
    submission = run.submission({"task_id": TASK}, "no program")
    monkeypatch.delenv(API_KEY, raising=False)
    with run.client() as client, pytest.raises(RequestRefusedError):
        client.score(**submission.body())
    monkeypatch.setenv(API_KEY, KEYS["team"])
    with run.client() as client:
        assert client.score(**submission.body()).reward == -10
