"""The lab's scripts and training, through a real server."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from tests.conftest import start_server, stop_server
from tests.desk import own_folder
from trainer_client import RewardClient, Submission
from trainer_client.lab import space
from trainer_client.lab.policy import SCRATCH, Policy, Prompt
from trainer_client.lab.training import Terms, Training

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BATCH = 4


@pytest.fixture(scope="module")
def client(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RewardClient]:
    log = tmp_path_factory.mktemp("lab") / "log"
    with own_folder(data_dir) as folder:
        process, url = start_server(folder, log, {"REWARD_SERVER_SANDBOX__SLOTS": "6"})
        try:
            with RewardClient(url) as client:
                yield client
        finally:
            stop_server(process)


def one_different() -> list[space.Actions]:
    """Return a good script, and all that differ from it in one choice."""
    good = tuple(0 for _ in space.SIZES)
    changed = [
        (*good[:place], option, *good[place + 1 :])
        for place, size in enumerate(space.SIZES)
        for option in range(1, size)
    ]
    return [good, *changed]


def test_a_script_is_valid_exactly_if_no_choice_is_a_mistake(client: RewardClient) -> None:
    scripts = one_different()
    items = [Submission(space.TASK, code=space.write(actions)) for actions in scripts]
    found = {one.index: one.answer for one in client.score_many(items)}
    for index, actions in enumerate(scripts):
        answer = found[index]
        assert answer is not None
        assert answer.valid == space.is_right(actions), space.write(actions) + answer.stderr_tail
    milestones = {len(one.milestones) for one in found.values() if one and not one.valid}
    assert len(milestones) >= 4, "mistakes end scripts at different stages"


def test_a_random_policy_is_mostly_wrong() -> None:
    everything = list(itertools.product(*map(range, space.SIZES)))
    assert np.mean([space.is_right(actions) for actions in everything]) < 0.05
    scripts = Policy().sample([SCRATCH] * 64, torch.Generator().manual_seed(1))
    assert len(set(scripts)) > 50


def test_the_policy_tells_the_chance_of_what_it_samples() -> None:
    policy = Policy()
    parent = Prompt("id", tuple(0 for _ in space.SIZES), "KeyError: 'label'")
    with torch.no_grad():
        policy.gates += 20.0
    copies = policy.sample([parent] * 8, torch.Generator().manual_seed(1))
    chances, entropies, _ = policy.judge([parent] * 8, copies)
    assert set(copies) == {parent.actions}
    assert chances.exp().tolist() == pytest.approx([1.0] * 8)
    assert entropies.tolist() == pytest.approx([0.0] * 8, abs=1e-3)


def test_a_step_trains_on_the_first_that_end_and_cancels_the_rest(client: RewardClient) -> None:
    training = Training(client, "lab-steps", Terms(batch=BATCH, multiplier=1.5, steps=3), seed=1)
    before = [parameter.clone() for parameter in training.policy.parameters()]
    steps = list(training.steps())
    assert [step.step for step in steps] == [1, 2, 3]
    assert [step.cancelled for step in steps] == [2, 2, 2]
    changed = [
        not torch.equal(old, new)
        for old, new in zip(before, training.policy.parameters(), strict=True)
    ]
    assert any(changed)
    kept = client.get("/v1/solutions", run_id="lab-steps")["solutions"]
    assert len(kept) >= 3 * BATCH
