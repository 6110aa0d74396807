"""Loaded by veRL: the same prompts get the same names, and a batch the same order, in every run.

veRL names prompts at random and takes samples in the order in which they end; both would change
the last digits of a sum.
"""

from __future__ import annotations

import contextvars
import itertools
from types import SimpleNamespace
from typing import Any

from verl.experimental.agent_loop import single_turn_agent_loop
from verl.trainer.ppo.v1 import trainer_base
from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer
from verl.workers.rollout.llm_server import LLMServerClient

_numbers = itertools.count()
_request: contextvars.ContextVar[str] = contextvars.ContextVar("request")
_run = single_turn_agent_loop.SingleTurnAgentLoop.run
_materialize = ReplayBuffer._materialize_batch


async def _named_run(self: Any, sampling_params: dict[str, Any], **kwargs: Any) -> Any:
    _request.set(f"{kwargs['uid']}-{kwargs['session_id']}")
    return await _run(self, sampling_params, **kwargs)


def _materialize_in_order(
    self: Any, partition_id: str, uids: list[str], snapshot: dict[str, dict[str, Any]]
) -> Any:
    return _materialize(self, partition_id, sorted(uids), dict(sorted(snapshot.items())))


trainer_base.uuid = SimpleNamespace(uuid4=lambda: f"prompt-{next(_numbers):06}")
single_turn_agent_loop.uuid4 = lambda: SimpleNamespace(hex=_request.get())
single_turn_agent_loop.SingleTurnAgentLoop.run = _named_run
LLMServerClient._vllm_request_id = lambda _self, request_id: request_id
ReplayBuffer._materialize_batch = _materialize_in_order
