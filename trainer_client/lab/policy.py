"""A policy that writes scripts choice by choice, and the baseline that it learns beside it.

It reads what its prompt gives: nothing, or a script to improve on, with what that printed. A gate
for each place says how much the parent's own choice is to be preferred there; it begins at zero,
so that copying is learnt and not built in.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import nn

from trainer_client.lab.space import SIZES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trainer_client.lab.space import Actions

_WORDS = 64
_WIDTH = 64
_WORD = re.compile(r"[A-Za-z_]{3,30}|\d\.\d")


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the policy is shown: a script by its choices and its output, or neither."""

    parent_id: str | None = None
    actions: Actions | None = None
    output: str = ""


SCRATCH = Prompt()


class Policy(nn.Module):
    """Chooses one option after another, each in the light of those before and of the prompt."""

    def __init__(self) -> None:
        super().__init__()
        self.read = nn.Sequential(
            nn.Linear(1 + sum(SIZES) + _WORDS, _WIDTH), nn.Tanh(), nn.Linear(_WIDTH, _WIDTH)
        )
        self.chosen = nn.ModuleList(nn.Embedding(size, _WIDTH) for size in SIZES)
        self.carry = nn.GRUCell(_WIDTH, _WIDTH)
        self.heads = nn.ModuleList(nn.Linear(_WIDTH, size) for size in SIZES)
        self.gates = nn.Parameter(torch.zeros(len(SIZES)))
        self.value = nn.Sequential(nn.Linear(_WIDTH, _WIDTH), nn.Tanh(), nn.Linear(_WIDTH, 1))
        for head in self.heads:
            nn.init.zeros_(head.weight)
            nn.init.zeros_(head.bias)

    @torch.no_grad()
    def sample(self, prompts: Sequence[Prompt], generator: torch.Generator) -> list[Actions]:
        """Return a script's choices for each prompt."""
        columns: list[torch.Tensor] = []
        for _, logits in self._walk(prompts, columns):
            columns.append(torch.multinomial(logits.softmax(-1), 1, generator=generator)[:, 0])
        return [tuple(row) for row in torch.stack(columns, 1).tolist()]

    def judge(
        self, prompts: Sequence[Prompt], actions: Sequence[Actions]
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the logarithm of each script's probability, its entropy, and the baseline."""
        columns = list(torch.tensor(actions).T)
        chances, entropies = [], []
        for place, logits in self._walk(prompts, columns):
            chance = torch.distributions.Categorical(logits=logits)
            chances.append(chance.log_prob(columns[place]))
            entropies.append(chance.entropy())
        values = self.value(self.read(encode(prompts)).detach())[:, 0]
        return torch.stack(chances).sum(0), torch.stack(entropies).sum(0), values

    def _walk(
        self, prompts: Sequence[Prompt], columns: list[torch.Tensor]
    ) -> Iterator[tuple[int, torch.Tensor]]:
        """Yield each place with its logits, once the choices before it are in the columns."""
        state = self.read(encode(prompts))
        for place, head in enumerate(self.heads):
            yield place, head(state) + self.gates[place] * _parents(prompts, place)
            state = self.carry(self.chosen[place](columns[place]), state)


def encode(prompts: Sequence[Prompt]) -> torch.Tensor:
    """Return prompts as numbers: whether there is a parent, its choices, words of its output."""
    own = torch.tensor([[float(prompt.actions is not None)] for prompt in prompts])
    parents = [_parents(prompts, place) for place in range(len(SIZES))]
    return torch.cat([own, *parents, torch.stack([_words(prompt.output) for prompt in prompts])], 1)


def _parents(prompts: Sequence[Prompt], place: int) -> torch.Tensor:
    chosen = torch.zeros(len(prompts), SIZES[place])
    for row, prompt in enumerate(prompts):
        if prompt.actions is not None:
            chosen[row, prompt.actions[place]] = 1.0
    return chosen


def _words(output: str) -> torch.Tensor:
    found = torch.zeros(_WORDS)
    for word in _WORD.findall(output):
        found[zlib.crc32(word.encode()) % _WORDS] = 1.0
    return found
