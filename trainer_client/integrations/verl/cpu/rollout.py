"""A rollout for the CPU: one Ray actor that generates with transformers, token by token.

The trainer hands over its weights after each step as it does to vLLM. There is no memory to
free and no request so long that it would have to be interrupted.
"""

from __future__ import annotations

import asyncio
import zlib
from typing import TYPE_CHECKING, Any

import ray
import torch
from verl.workers.rollout import base
from verl.workers.rollout.replica import RolloutReplica, RolloutReplicaRegistry, TokenOutput

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

NAME = "hf_cpu"
_ACTOR = "hf_cpu_server_{rank}"


def register() -> None:
    """Let veRL find the rollout under its name."""
    base._ROLLOUT_REGISTRY[NAME, "async"] = f"{__name__}.{CpuRollout.__name__}"  # noqa: SLF001
    RolloutReplicaRegistry.register(NAME, lambda: CpuReplica)


class CpuServer:
    """The model that answers prompts."""

    def __init__(self, path: str, seed: int) -> None:
        from transformers import AutoModelForCausalLM  # noqa: PLC0415  # slow, wanted here alone

        torch.set_num_threads(1)
        self._model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()
        self._seed = seed
        self._step = 0

    async def generate(
        self,
        request_id: str,
        prompt_ids: Sequence[int],
        sampling_params: Mapping[str, Any],
        **_rest: object,
    ) -> TokenOutput:
        """Return what the model answers to a prompt; the same request, the same answer."""
        random = torch.Generator().manual_seed(zlib.crc32(f"{self._seed}/{request_id}".encode()))
        most = sampling_params.get("max_tokens") or sampling_params.get("max_new_tokens") or 1
        temperature = float(sampling_params.get("temperature", 1.0))
        ids, cache = torch.tensor([list(prompt_ids)]), None
        tokens: list[int] = []
        log_probs: list[float] = []
        for _ in range(int(most)):
            with torch.no_grad():
                output = self._model(ids, past_key_values=cache, use_cache=True)
            token, log_prob = _draw(output.logits[0, -1].float(), temperature, random)
            tokens.append(token)
            log_probs.append(log_prob)
            if token == self._model.config.eos_token_id:
                break
            ids, cache = torch.tensor([[token]]), output.past_key_values
            await asyncio.sleep(0)
        return TokenOutput(
            token_ids=tokens,
            log_probs=log_probs,
            stop_reason="completed",
            extra_fields={"global_steps": self._step},
        )

    def take_weights(self, weights: Mapping[str, torch.Tensor], step: int | None) -> None:
        """Answer with these weights from now on."""
        self._model.load_state_dict(weights)
        self._step = step or 0

    async def _nothing(self, *_args: object, **_options: object) -> None:
        """Free no memory, keep no cache between requests, and interrupt or profile nothing."""

    wake_up = sleep = abort_all_requests = resume_generation = _nothing
    clear_kv_cache = release_kv_cache = resume_kv_cache = _nothing
    start_profile = stop_profile = _nothing


class CpuReplica(RolloutReplica):
    """Starts the server."""

    async def launch_servers(self) -> None:
        """Start the only one there is."""
        actor = ray.remote(CpuServer).options(
            name=_ACTOR.format(rank=self.replica_rank), num_cpus=0, max_concurrency=1000
        )
        handle = actor.remote(self.model_config.path, self.config.seed)
        self.servers = [handle]
        self._server_handle = handle
        self._server_address = f"{NAME}-{self.replica_rank}"


class CpuRollout(base.BaseRollout):
    """The trainer's end of it."""

    async def resume(self, tags: list[str]) -> None:
        """Nothing was put aside."""

    async def release(self) -> None:
        """Nothing is held."""

    async def update_weights(
        self,
        weights: Iterable[tuple[str, torch.Tensor]],
        wire_format: str = "named_tensors",  # noqa: ARG002
        global_steps: int | None = None,
        **_rest: object,
    ) -> None:
        """Hand the trainer's weights to the server."""
        whole = {name: _whole(weight).detach().float().clone() for name, weight in weights}
        server = ray.get_actor(_ACTOR.format(rank=0))
        await server.take_weights.remote(whole, global_steps)


def _draw(logits: torch.Tensor, temperature: float, random: torch.Generator) -> tuple[int, float]:
    if temperature == 0:
        return int(logits.argmax()), 0.0
    log_probs = torch.log_softmax(logits / temperature, -1)
    token = int(torch.multinomial(log_probs.exp(), 1, generator=random))
    return token, float(log_probs[token])


def _whole(weight: torch.Tensor) -> torch.Tensor:
    return weight.full_tensor() if hasattr(weight, "full_tensor") else weight
