"""A run that the server refuses ends, instead of handing out prompts for ever."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.integration.verl.training import TASK
from trainer_client import RequestRefusedError
from trainer_client.integrations.verl import plugin
from trainer_client.settings import RunSettings

if TYPE_CHECKING:
    from tests.conftest import RunningServer


def trainer(url: str, task_id: str = TASK) -> plugin.DurationAware:
    """Return a trainer that has trained for an hour, as far as this matters."""
    made = object.__new__(plugin.DurationAwareSync)
    made._run = RunSettings.read({"url": url, "tasks": [task_id], "run_id": "refused"})
    made._probed_at = time.monotonic() - 3600
    return made


def test_a_server_that_serves_us_lets_the_run_go_on(arena: RunningServer) -> None:
    trainer(arena.url)._stop_if_refused()


def test_a_server_that_is_away_lets_the_run_go_on() -> None:
    trainer("http://127.0.0.1:9")._stop_if_refused()


def test_a_task_that_is_gone_ends_the_run(arena: RunningServer) -> None:
    with pytest.raises(RequestRefusedError, match="no such task"):
        trainer(arena.url, "no-such-task")._stop_if_refused()


def test_lost_samples_do_not_each_trigger_a_request(arena: RunningServer) -> None:
    asked = trainer(arena.url, "no-such-task")
    asked._probed_at = time.monotonic()
    asked._stop_if_refused()
