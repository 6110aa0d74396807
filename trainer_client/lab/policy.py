"""A policy that writes scripts choice by choice, and the critic that learns beside it.

Its prompt is empty, or a script to improve on with that script's output. In the second case it
keeps each piece of the script or writes it anew. It learns how often to keep a piece, for each
position.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn.functional import one_hot

from trainer_client.lab.program_space import CHOICES, SIZES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trainer_client.lab.program_space import Actions

_WORDS = 64
_KEPT = 1.0
_LEAST = 1e-8
_WIDTH = 64
_READ = 1 + sum(SIZES) + _WORDS
_WORD = re.compile(r"[A-Za-z_]{3,30}|\d\.\d")


@dataclass(frozen=True, slots=True)
class PolicyPrompt:
    """A prompt of the policy: a script by its choices and its output, or neither."""

    parent_id: str | None = None
    actions: Actions | None = None
    output: str = ""


SCRATCH = PolicyPrompt()


class Policy(nn.Module):
    """Chooses one option after another, given the previous ones and the prompt."""

    def __init__(self, *, is_informed: bool = True) -> None:
        super().__init__()
        self.read = nn.Sequential(nn.Linear(_READ, _WIDTH), nn.Tanh(), nn.Linear(_WIDTH, _WIDTH))
        self.chosen = nn.ModuleList(nn.Embedding(size, _WIDTH) for size in SIZES)
        self.carry = nn.GRUCell(_WIDTH, _WIDTH)
        self.heads = nn.ModuleList(nn.Linear(_WIDTH, size) for size in SIZES)
        self.kept = nn.Parameter(torch.full((len(SIZES),), _KEPT))
        for head, choice in zip(self.heads, CHOICES, strict=True):
            nn.init.zeros_(head.weight)
            weights = [one.weight if is_informed else one.blind_weight for one in choice.options]
            head.bias.data = torch.tensor(weights).log()

    @torch.no_grad()
    def sample(self, prompts: Sequence[PolicyPrompt], generator: torch.Generator) -> list[Actions]:
        """Return a script's choices for each prompt."""
        columns: list[torch.Tensor] = []
        for _, logits in self._logits(prompts, columns):
            columns.append(torch.multinomial(logits.softmax(-1), 1, generator=generator)[:, 0])
        return [tuple(row) for row in torch.stack(columns, 1).tolist()]

    def evaluate_actions(
        self, prompts: Sequence[PolicyPrompt], actions: Sequence[Actions]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the logarithm of each choice's probability, and the entropy where it was made."""
        columns = list(torch.tensor(actions).T)
        chances, entropies = [], []
        for position, logits in self._logits(prompts, columns):
            chance = torch.distributions.Categorical(logits=logits, validate_args=False)
            chances.append(chance.log_prob(columns[position]))
            entropies.append(chance.entropy())
        return torch.stack(chances, 1), torch.stack(entropies, 1)

    def _logits(
        self, prompts: Sequence[PolicyPrompt], columns: list[torch.Tensor]
    ) -> Iterator[tuple[int, torch.Tensor]]:
        """Yield each position with its logits, once the choices before it are in the columns."""
        state = self.read(encode(prompts))
        for position, head in enumerate(self.heads):
            kept = self.kept[position].sigmoid() * _parents(prompts, position)
            anew = head(state).softmax(-1) * (1 - kept.sum(1, keepdim=True))
            yield position, (anew + kept).clamp_min(_LEAST).log()
            state = self.carry(self.chosen[position](columns[position]), state)


class Critic(nn.Module):
    """Predicts the reward before each choice, from the prompt and the previous choices."""

    def __init__(self) -> None:
        super().__init__()
        self.expect = nn.Sequential(
            nn.Linear(_READ + sum(SIZES) + len(SIZES), _WIDTH), nn.Tanh(), nn.Linear(_WIDTH, 1)
        )

    def forward(self, prompts: Sequence[PolicyPrompt], actions: Sequence[Actions]) -> torch.Tensor:
        """Return a value for every position of every script."""
        count = len(SIZES)
        chosen = [
            one_hot(column, size)
            for column, size in zip(torch.tensor(actions).T, SIZES, strict=True)
        ]
        seen = [
            torch.cat([*chosen[:position], torch.zeros(len(actions), sum(SIZES[position:]))], 1)
            for position in range(count)
        ]
        prompt = encode(prompts)[:, None].expand(-1, count, -1)
        where = torch.eye(count).expand(len(actions), -1, -1)
        return self.expect(torch.cat([prompt, torch.stack(seen, 1), where], 2))[..., 0]


def encode(prompts: Sequence[PolicyPrompt]) -> torch.Tensor:
    """Encode prompts: whether there is a parent, its choices, words of its output."""
    own = torch.tensor([[float(prompt.actions is not None)] for prompt in prompts])
    parents = [_parents(prompts, position) for position in range(len(SIZES))]
    return torch.cat([own, *parents, torch.stack([_words(prompt.output) for prompt in prompts])], 1)


def _parents(prompts: Sequence[PolicyPrompt], position: int) -> torch.Tensor:
    chosen = torch.zeros(len(prompts), SIZES[position])
    for row, prompt in enumerate(prompts):
        if prompt.actions is not None:
            chosen[row, prompt.actions[position]] = 1.0
    return chosen


def _words(output: str) -> torch.Tensor:
    found = torch.zeros(_WORDS)
    for word in _WORD.findall(output):
        found[zlib.crc32(word.encode()) % _WORDS] = 1.0
    return found
