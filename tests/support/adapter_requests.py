"""Requests of trainers with a wire format of their own, field by field.

Taken from their sources: OpenRLHF 0.11.2 (`openrlhf/utils/agent.py`), slime at 624b824
(`slime/rollout/rm_hub/__init__.py`), ROLL at 8eb27cc
(`roll/pipeline/rlvr/rewards/remote_reward_system_worker.py`), NeMo-Gym at 07d6b0d
(`responses_api_agents/simple_agent/app.py`).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

PROMPT = (
    "<|im_start|>user\nWrite a program that is better than this one, and explain it first.\n"
    "```python\nprint('a parent')\n```<|im_end|>\n<|im_start|>assistant\n"
)
Body = dict[str, Any]


def openrlhf(completion: str, label: object) -> Body:
    return {
        "query": [f"{PROMPT}{completion}<|im_end|>"],
        "prompts": [PROMPT],
        "labels": [label],
    }


def slime(completion: str, label: object) -> Body:
    return {"prompt": PROMPT, "response": f"{completion}<|im_end|>", "label": label}


def roll(completion: str, label: object, rollout_id: str = "r-0") -> Body:
    return {
        "priority": 1,
        "project_id": "roll_default_experiment_id",
        "experiment_id": "roll_default_task_id",
        "global_step": 3,
        "data_id": "row-7",
        "rollout_id": rollout_id,
        "prompt": PROMPT,
        "response": completion,
        "reward_info": {"ground_truth": label},
        "reward_manager": [{"plugin_name": "reward_server"}],
        "timeout": 300,
    }


def nemo_gym(completion: str, label: str, **row: object) -> Body:
    return {
        "responses_create_params": {
            "input": [{"role": "user", "content": PROMPT, "type": "message"}],
            "temperature": 1.0,
        },
        "task_id": label,
        "_ng_task_index": 4,
        "_ng_rollout_index": 1,
        **row,
        "response": {
            "id": "resp_1",
            "created_at": 1.0,
            "model": "policy",
            "object": "response",
            "output": [
                {"id": "rs_1", "type": "reasoning", "summary": []},
                {
                    "id": "msg_1",
                    "type": "message",
                    "role": "assistant",
                    "status": "completed",
                    "content": [{"type": "output_text", "text": completion, "annotations": []}],
                },
            ],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        },
    }


def _post(http: httpx.Client, path: str, body: Body) -> Any:  # noqa: ANN401  # what is in it
    response = http.post(path, json=body)
    assert response.status_code == 200, response.text
    return response.json()


def reward_by_openrlhf(http: httpx.Client, completion: str, task: str) -> float:
    reward: float = _post(http, "/adapters/openrlhf/get_reward", openrlhf(completion, task))[
        "rewards"
    ][0]
    return reward


def reward_by_slime(http: httpx.Client, completion: str, task: str) -> float:
    reward: float = _post(http, "/adapters/slime", slime(completion, task))
    return reward


def ask_roll(http: httpx.Client, request_id: str) -> Body:
    """Ask as ROLL does: a GET with a JSON body."""
    asked = http.request("GET", "/adapters/roll/result", json={"reward_request_id": request_id})
    assert asked.status_code == 200, asked.text
    answer: Body = asked.json()
    return answer


def reward_by_roll(http: httpx.Client, completion: str, task: str) -> float:
    submitted = _post(http, "/adapters/roll/submit", roll(completion, task))
    assert submitted["errcode"] == 0, submitted
    while (answer := ask_roll(http, submitted["reward_request_id"]))["errcode"] == 1:
        time.sleep(0.05)
    assert answer["errcode"] == 0, answer
    reward: float = answer["reward_score"]
    return reward


def reward_by_nemo_gym(http: httpx.Client, completion: str, task: str) -> float:
    reward: float = _post(http, "/adapters/nemo-gym/verify", nemo_gym(completion, task))["reward"]
    return reward


INTEGRATIONS: dict[str, Callable[[httpx.Client, str, str], float]] = {
    "openrlhf": reward_by_openrlhf,
    "slime": reward_by_slime,
    "roll": reward_by_roll,
    "nemo-gym": reward_by_nemo_gym,
}
