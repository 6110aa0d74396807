"""The lab's scripts and training, through a real server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from tests.conftest import start_server, stop_server
from tests.support.job_client import own_folder
from trainer_client import RewardClient, Submission
from trainer_client.lab import program_space
from trainer_client.lab.policy import SCRATCH, Critic, Policy, PolicyPrompt
from trainer_client.lab.records import record
from trainer_client.lab.training import LabConfig, Training

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


def one_different() -> list[program_space.Actions]:
    """Return a good script, and all that differ from it in one choice."""
    good = tuple(0 for _ in program_space.SIZES)
    changed = [
        (*good[:position], option, *good[position + 1 :])
        for position, size in enumerate(program_space.SIZES)
        for option in range(1, size)
    ]
    return [good, *changed]


def test_a_script_is_valid_exactly_if_no_choice_is_a_mistake(client: RewardClient) -> None:
    scripts = one_different()
    items = [
        Submission(program_space.TASK, code=program_space.write(actions)) for actions in scripts
    ]
    found = {one.index: one.answer for one in client.score_many(items)}
    for index, actions in enumerate(scripts):
        answer = found[index]
        assert answer is not None
        assert answer.valid == program_space.is_right(actions), (
            program_space.write(actions) + answer.stderr_tail
        )
    milestones = {len(one.milestones) for one in found.values() if one and not one.valid}
    assert len(milestones) >= 4, "mistakes end scripts at different stages"


@pytest.mark.parametrize("is_informed", [True, False])
def test_a_policy_is_mostly_wrong_before_it_is_trained(*, is_informed: bool) -> None:
    policy = Policy(is_informed=is_informed)
    scripts = policy.sample([SCRATCH] * 2000, torch.Generator().manual_seed(1))
    right = float(np.mean([program_space.is_right(actions) for actions in scripts]))
    assert right < (0.2 if is_informed else 0.03)
    assert is_informed == (right > 0.03)
    assert len(set(scripts)) > 1000


def test_the_policy_returns_probabilities_of_its_samples() -> None:
    policy = Policy()
    parent = PolicyPrompt("id", tuple(0 for _ in program_space.SIZES), "KeyError: 'label'")
    with torch.no_grad():
        policy.kept += 30.0
    copies = policy.sample([parent] * 8, torch.Generator().manual_seed(1))
    chances, entropies = policy.evaluate_actions([parent] * 8, copies)
    assert set(copies) == {parent.actions}
    assert chances.exp().flatten().tolist() == pytest.approx([1.0] * 8 * len(program_space.SIZES))
    assert entropies.sum(1).tolist() == pytest.approx([0.0] * 8, abs=1e-3)


def test_probabilities_of_all_options_sum_to_one() -> None:
    policy, others = Policy(), tuple(0 for _ in program_space.SIZES[1:])
    scripts = [(family, *others) for family in range(program_space.SIZES[0])]
    for prompt in (SCRATCH, PolicyPrompt("id", (3, *others), "")):
        chances, _ = policy.evaluate_actions([prompt] * len(scripts), scripts)
        assert float(chances[:, 0].detach().exp().sum()) == pytest.approx(1.0, abs=1e-5)


def test_the_critic_sees_only_what_was_chosen_before() -> None:
    critic, first = Critic(), tuple(0 for _ in program_space.SIZES)
    last = (*first[:-1], 1)
    values = critic([SCRATCH] * 2, [first, last])
    assert torch.equal(values[0], values[1])
    changed = critic([SCRATCH] * 2, [first, (1, *first[1:])])
    assert (changed[0, 1:] != changed[1, 1:]).all()
    assert changed[0, 0] == changed[1, 0]


def test_a_step_trains_on_the_first_that_end_and_cancels_the_rest(client: RewardClient) -> None:
    training = Training(
        client, "lab-steps", LabConfig(batch=BATCH, multiplier=1.5, steps=3), seed=1
    )
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


def test_half_of_the_final_programs_improve_on_the_best(client: RewardClient) -> None:
    training = Training(
        client, "lab-final", LabConfig(batch=BATCH, multiplier=1.0, steps=1), seed=1
    )
    good = [tuple(0 for _ in program_space.SIZES)] * 2
    training.policy.sample = lambda prompts, _: (good * len(prompts))[: len(prompts)]
    list(training.steps())
    final = training.final(8)
    assert [sample.prompt.parent_id is None for sample in final].count(True) == 4
    made = record("arm", 1, [], final)
    assert made.final["samples"] == 8
    assert made.final["scratch"]["samples"] == 4
    assert made.best >= made.written("best") > 0.5
