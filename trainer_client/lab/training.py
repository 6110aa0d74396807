"""Algorithm 1 of the paper (arXiv 2509.01684) on the lab's policy, through the server alone.

A step samples m·B prompts and a script for each, submits them all, continues when B have a score,
and cancels the rest. Then PPO with clipping updates the policy. Advantages are whitened and, if the
run is configured so, weighted by durations; the targets of the critic are not weighted.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from trainer_client.client.submissions import Submission
from trainer_client.durations import weigh_all
from trainer_client.lab.policy import SCRATCH, Critic, Policy, PolicyPrompt
from trainer_client.lab.program_space import FAMILIES, FAMILY, TASK, write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from trainer_client.client.answers import Answer
    from trainer_client.client.blocking import RewardClient
    from trainer_client.lab.program_space import Actions

FLOOR = -10.0


@dataclass(frozen=True, slots=True)
class LabConfig:
    """The settings of a run. Partial credit is a setting of the server."""

    batch: int = 24
    multiplier: float = 1.5
    steps: int = 18
    is_informed: bool = True
    weighs_durations: bool = True
    improve_fraction: float = 0.5
    learning_rate: float = 0.003
    epochs: int = 4
    critic_learning_rate: float = 0.01
    critic_epochs: int = 10
    clip: float = 0.2
    least_spread: float = 0.02
    entropy: float = 0.01
    wall_seconds: float = 60.0

    @property
    def in_flight(self) -> int:
        """Return m·B."""
        return round(self.batch * self.multiplier)


@dataclass(frozen=True, slots=True)
class LabSample:
    """A script, its prompt, and its answer."""

    prompt: PolicyPrompt
    actions: Actions
    answer: Answer

    @property
    def score(self) -> float:
        """The task's score, or the value that the paper's figures use for an invalid submission."""
        return FLOOR if self.answer.score is None else self.answer.score


@dataclass(frozen=True, slots=True)
class LabStep:
    """The metrics of a step: of the samples it trained on, and the families of all samples."""

    step: int
    seconds: float
    mean_reward: float
    mean_score: float
    best_score: float | None
    valid: float
    mean_duration: float
    cpu_seconds: float
    families: dict[str, float]
    entropy: float
    improvements: int
    cancelled: int


class Training:
    """One run of one seed."""

    def __init__(self, client: RewardClient, run_id: str, config: LabConfig, seed: int) -> None:
        torch.manual_seed(seed)
        self._client, self._run_id, self._config, self._seed = client, run_id, config, seed
        self._generator = torch.Generator().manual_seed(seed)
        self.policy = Policy(is_informed=config.is_informed)
        self.critic = Critic()
        with torch.no_grad():
            self.critic.expect[-1].bias.fill_(FLOOR)
        self._improve_policy = descent(self.policy, config.learning_rate)
        self._improve_critic = descent(self.critic, config.critic_learning_rate)
        self._written: dict[str, Actions] = {}
        self._sampled: list[Actions] = []

    def steps(self) -> Iterator[LabStep]:
        """Train, and yield the metrics of each step."""
        for step in range(1, self._config.steps + 1):
            began = time.monotonic()
            samples = self._collect(step)
            entropy = self._learn(samples)
            yield self._describe(step, samples, entropy, time.monotonic() - began)

    def _collect(self, step: int) -> list[LabSample]:
        """Return the first B of m·B samples that end with a reward."""
        config = self._config
        prompts = self._prompts(step, config.in_flight, config.improve_fraction)
        scripts = self._sampled = self.policy.sample(prompts, self._generator)
        return self._score(prompts, scripts, step, min_complete=config.batch)

    def final(self, count: int) -> list[LabSample]:
        """Return what the policy writes in the end, all of it run to its end.

        A policy that was trained to improve on solutions does so for half of them.
        """
        improvements = count // 2 if self._config.improve_fraction else 0
        prompts = [SCRATCH] * (count - improvements)
        step = self._config.steps + 1
        prompts += self._prompts(step, improvements, 1.0) if improvements else []
        scripts = self.policy.sample(prompts, self._generator)
        return self._score(prompts, scripts, step)

    def _score(
        self,
        prompts: Sequence[PolicyPrompt],
        scripts: Sequence[Actions],
        step: int,
        min_complete: int | None = None,
    ) -> list[LabSample]:
        """Return the samples that end with a reward. What `min_complete` leaves is cancelled."""
        codes = [write(actions) for actions in scripts]
        self._written.update(zip(codes, scripts, strict=True))
        submissions = [
            Submission(
                TASK,
                code=code,
                run_id=self._run_id,
                step=step,
                parent_id=prompt.parent_id,
                prompt_kind="improve" if prompt.parent_id else "scratch",
                wall_seconds=self._config.wall_seconds,
            )
            for prompt, code in zip(prompts, codes, strict=True)
        ]
        results = self._client.score_many(
            submissions,
            min_complete=min_complete,
            rest="continue" if min_complete is None else "cancel",
        )
        return [
            LabSample(prompts[one.index], scripts[one.index], one.answer)
            for one in results
            if one.answer is not None
        ]

    def _prompts(self, step: int, count: int, improve_fraction: float) -> list[PolicyPrompt]:
        """Return prompts, some of which ask to improve on what the run has done before."""
        if not improve_fraction:
            return [SCRATCH] * count
        reply = self._client.prompts(
            TASK,
            run_id=self._run_id,
            n=count,
            improve_fraction=improve_fraction,
            strategy="best",
            seed=self._seed * 10_000 + step,
        )
        parents = {one["parent_id"] for one in reply["prompts"]} - {None}
        read = {parent_id: self._read(parent_id) for parent_id in parents}
        return [read.get(one["parent_id"], SCRATCH) for one in reply["prompts"]]

    def _read(self, parent_id: str) -> PolicyPrompt:
        """Return a stored solution as the policy sees it; some ended after their step went on."""
        stored = self._client.get(f"/v1/solutions/{parent_id}")
        output = f"{stored['stdout_tail']}\n{stored['stderr_tail']}\n{stored['score']:.1f}"
        return PolicyPrompt(parent_id, self._written[stored["code"]], output)

    def _learn(self, samples: Sequence[LabSample]) -> float:
        """Improve the policy on these samples, and return the entropy it had."""
        config = self._config
        prompts = [sample.prompt for sample in samples]
        actions = [sample.actions for sample in samples]
        rewards = torch.tensor([[sample.answer.reward] for sample in samples])
        with torch.no_grad():
            old, entropies = self.policy.evaluate_actions(prompts, actions)
            advantages = rewards - self.critic(prompts, actions)
        advantages = (advantages - advantages.mean()) / (advantages.std() + config.least_spread)
        advantages *= self._weights(samples)[:, None]
        for _ in range(config.critic_epochs):
            self._improve_critic(((self.critic(prompts, actions) - rewards) ** 2).mean())
        for _ in range(config.epochs):
            chances, entropy = self.policy.evaluate_actions(prompts, actions)
            ratio = (chances - old).exp()
            clipped = ratio.clamp(1 - config.clip, 1 + config.clip)
            gain = torch.minimum(ratio * advantages, clipped * advantages).mean()
            self._improve_policy(-gain - config.entropy * entropy.mean())
        return float(entropies.sum(1).mean())

    def _weights(self, samples: Sequence[LabSample]) -> torch.Tensor:
        if not self._config.weighs_durations:
            return torch.ones(len(samples))
        seconds = np.array([sample.answer.duration_seconds for sample in samples])
        return torch.tensor(weigh_all(seconds), dtype=torch.float32)

    def _describe(
        self, step: int, samples: Sequence[LabSample], entropy: float, seconds: float
    ) -> LabStep:
        valid = [sample.answer for sample in samples if sample.answer.valid]
        chosen = [FAMILIES[actions[FAMILY]] for actions in self._sampled]
        scores = [answer.score for answer in valid if answer.score is not None]
        return LabStep(
            step=step,
            seconds=seconds,
            mean_reward=float(np.mean([sample.answer.reward for sample in samples])),
            mean_score=float(np.mean([sample.score for sample in samples])),
            best_score=max(scores, default=None),
            valid=len(valid) / len(samples),
            mean_duration=float(np.mean([one.answer.duration_seconds for one in samples])),
            cpu_seconds=float(np.mean([one.answer.cpu_seconds for one in samples])),
            families={name: chosen.count(name) / len(chosen) for name in FAMILIES},
            entropy=entropy,
            improvements=sum(sample.prompt.parent_id is not None for sample in samples),
            cancelled=self._config.in_flight - len(samples),
        )


def descent(network: torch.nn.Module, learning_rate: float) -> Callable[[torch.Tensor], None]:
    """Return what takes one step down a loss."""
    optimizer = torch.optim.Adam(network.parameters(), lr=learning_rate)

    def step(loss: torch.Tensor) -> None:
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()

    return step
