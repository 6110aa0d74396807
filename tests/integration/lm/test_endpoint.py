"""`reward-server lm serve` starts an endpoint that an instrumenter can use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.conftest import LM_PID
from tests.integration.lm.conftest import MODEL, questions_answered

if TYPE_CHECKING:
    import httpx

STEPS = ("first", "second", "third")
SCHEMA = {
    "type": "object",
    "properties": {step: {"type": "integer", "minimum": 1, "maximum": 9} for step in STEPS},
    "required": list(STEPS),
    "additionalProperties": False,
}


def ask(lm: httpx.Client, text: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    body = {"model": MODEL, "messages": [{"role": "user", "content": text}], "temperature": 0}
    answer = lm.post("/v1/chat/completions", json={**body, **more})
    assert answer.status_code == 200, answer.text
    content: dict[str, Any] = answer.json()
    return content


def test_the_model_is_listed_by_a_name_without_a_path(lm: httpx.Client) -> None:
    listed = lm.get("/v1/models").json()["data"]
    assert [model["id"] for model in listed] == [MODEL]
    assert listed[0]["max_model_len"] == 8192


def test_a_schema_binds_the_answer_and_leaves_no_room_for_blanks(lm: httpx.Client) -> None:
    guide = {"type": "json_schema", "json_schema": {"name": "steps", "schema": SCHEMA}}
    answer = ask(lm, "Tell me a story about a fox.", response_format=guide, max_tokens=100)
    text = answer["choices"][0]["message"]["content"]
    assert answer["choices"][0]["finish_reason"] == "stop"
    steps = json.loads(text)
    assert steps.keys() == set(STEPS)
    assert all(1 <= line <= 9 for line in steps.values())
    assert len(text) <= len(json.dumps(steps))


def test_tokens_are_counted(lm: httpx.Client) -> None:
    before = questions_answered(lm)
    usage = ask(lm, "Count.", max_tokens=5, ignore_eos=True)["usage"]
    assert usage["completion_tokens"] == 5
    assert usage["prompt_tokens"] > 0
    assert questions_answered(lm) == before + 1


def test_the_same_weights_say_the_same(lm: httpx.Client) -> None:
    first, second = (ask(lm, "Write one line of Python.", max_tokens=24) for _ in range(2))
    assert first["choices"][0]["message"] == second["choices"][0]["message"]
    assert first["system_fingerprint"] == second["system_fingerprint"]


def test_prompts_are_kept_out_of_the_log(lm: httpx.Client) -> None:
    ask(lm, "The word is pomegranate.", max_tokens=4)
    log = Path(f"/proc/{LM_PID}/fd/1").read_text()
    assert "pomegranate" not in log
    assert "chat/completions HTTP" not in log
    assert "Application startup complete" in log
