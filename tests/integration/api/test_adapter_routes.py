"""Adapters for trainers that have a wire format of their own."""

from __future__ import annotations

import base64
import json
import math
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from reward_server.api.adapters.openrlhf import completion_in
from reward_server.api.adapters.samples import AdapterSample, Label
from tests.conftest import wait_until
from tests.support import adapter_requests
from tests.support.adapter_requests import INTEGRATIONS, PROMPT
from tests.support.job_client import KEYS, TASK, JobClient, nap

if TYPE_CHECKING:
    from collections.abc import Callable

COPY = (
    "```python\nimport shutil\n"
    f'shutil.copy("/workdir/{TASK}/prepared/public/sample_submission.csv", "submission.csv")\n'
    "```"
)
CRASH = "```python\nraise SystemExit(1)\n```"
MEASURED = {
    *("valid", "medal", "milestones", "timed_out", "duration_seconds", "cpu_seconds"),
    *("queue_seconds", "contended"),
}
POSTED: dict[str, tuple[str, Callable[[str, str], dict[str, Any]]]] = {
    "openrlhf": ("/adapters/openrlhf/get_reward", adapter_requests.openrlhf),
    "slime": ("/adapters/slime", adapter_requests.slime),
    "roll": ("/adapters/roll/submit", adapter_requests.roll),
    "nemo-gym": ("/adapters/nemo-gym/verify", adapter_requests.nemo_gym),
}
# What a trainer sends and nobody here needs.
NOT_NEEDED = {"priority", "reward_manager", "timeout", "_ng_task_index", "_ng_rollout_index"}


def fenced(code: str) -> str:
    return f"A plan.\n```python\n{code}```\n"


def score(team: JobClient, completion: str) -> dict[str, Any]:
    answer: dict[str, Any] = team.http.post(
        "/score", json={"task_id": TASK, "completion": completion}
    ).json()
    return answer


@pytest.mark.parametrize("adapter", INTEGRATIONS)
@pytest.mark.parametrize("completion", [COPY, CRASH, "no code", "```python\n(\n```"])
def test_the_reward_is_the_same_through_every_adapter(
    team: JobClient, adapter: str, completion: str
) -> None:
    assert INTEGRATIONS[adapter](team.http, completion, TASK) == score(team, completion)["reward"]


@pytest.mark.parametrize("adapter", POSTED)
def test_a_field_that_is_missing_is_named(team: JobClient, adapter: str) -> None:
    path, make = POSTED[adapter]
    body = make(COPY, TASK)
    for name in body.keys() - NOT_NEEDED:
        without = {key: value for key, value in body.items() if key != name}
        response = team.http.post(path, json=without)
        assert response.status_code == 422, (name, response.text)
        assert name in response.json()["detail"]


@pytest.mark.parametrize("adapter", POSTED)
def test_unknown_fields_of_a_trainer_are_ignored(team: JobClient, adapter: str) -> None:
    path, make = POSTED[adapter]
    assert team.http.post(path, json={**make(COPY, TASK), "new_in_2027": 1}).status_code == 200


@pytest.mark.parametrize("adapter", ["openrlhf", "slime", "nemo-gym"])
def test_an_unknown_task_is_reported(team: JobClient, adapter: str) -> None:
    path, make = POSTED[adapter]
    response = team.http.post(path, json=make(COPY, "no-such-task"))
    assert response.status_code == 404
    assert response.json()["kind"] == "unknown_task"


@pytest.mark.parametrize("adapter", POSTED)
def test_a_repeated_request_joins_the_running_job(
    team: JobClient, adapter: str, run_id: str
) -> None:
    path, make = POSTED[adapter]
    mark = f"2.{list(POSTED).index(adapter)}71"
    body = make(fenced(nap(mark)), TASK)
    path = f"{path}?run_id={run_id}"
    if adapter != "roll":
        short_request = team.http.build_request("POST", path, json=body, timeout=1.0)
        with pytest.raises(httpx.ReadTimeout):
            team.http.send(short_request)
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda _: team.http.post(path, json=body), range(3)))
    assert [answer.status_code for answer in answers] == [200] * 3
    assert len({answer.text for answer in answers}) == 1
    wait_until(lambda: team.solutions(run_id))
    assert team.http.post(path, json=body).text == answers[0].text
    assert len(team.solutions(run_id)) == 1
    assert not team.runs(mark)


def test_another_text_or_run_is_another_job(team: JobClient, run_id: str) -> None:
    for text in (COPY, f"{COPY} "):
        team.http.post(f"/adapters/slime?run_id={run_id}", json=adapter_requests.slime(text, TASK))
    team.http.post(f"/adapters/slime?run_id={run_id}-2", json=adapter_requests.slime(COPY, TASK))
    assert len(team.solutions(run_id)) == 2
    assert len(team.solutions(f"{run_id}-2")) == 1


@pytest.mark.parametrize("as_text", [True, False])
@pytest.mark.parametrize("adapter", ["openrlhf", "slime", "roll"])
def test_a_label_can_name_the_parent_of_a_program(
    team: JobClient, adapter: str, run_id: str, *, as_text: bool
) -> None:
    parent = score(team, COPY)["solution_id"]
    label: Any = {"task_id": TASK, "parent_id": parent, "wall_seconds": 20.0}
    path, make = POSTED[adapter]
    body = make(COPY, json.dumps(label) if as_text else label)
    assert team.http.post(f"{path}?run_id={run_id}", json=body).status_code == 200
    wait_until(lambda: team.solutions(run_id))
    found = team.solutions(run_id)[0]
    assert found["parent_id"] == parent
    assert found["prompt_kind"] == "improve"


@pytest.mark.parametrize("label", ['{"task_id": 1}', '{"task": "x"}', "{", "", {}, {"task_id": ""}])
def test_a_label_that_names_no_task_is_refused(team: JobClient, label: object) -> None:
    response = team.http.post("/adapters/slime", json=adapter_requests.slime(COPY, label))
    assert response.status_code == 422, response.text
    assert "label" in response.json()["detail"]


# OpenRLHF


def test_openrlhf_gets_rewards_scores_and_logs_of_one_length(team: JobClient) -> None:
    one, two = adapter_requests.openrlhf(COPY, TASK), adapter_requests.openrlhf(CRASH, TASK)
    body = {name: one[name] + two[name] for name in one}
    answer = team.http.post("/adapters/openrlhf/get_reward", json=body).json()
    assert set(answer) == {"rewards", "scores", "extra_logs"}
    assert answer["rewards"] == answer["scores"]
    assert answer["rewards"] == [score(team, text)["reward"] for text in (COPY, CRASH)]
    assert set(answer["extra_logs"]) == MEASURED
    assert answer["extra_logs"]["valid"] == [1.0, 0.0]
    assert all(seconds > 0 for seconds in answer["extra_logs"]["duration_seconds"])


@pytest.mark.parametrize("short", ["query", "prompts", "labels"])
def test_openrlhf_lists_must_be_of_one_length(team: JobClient, short: str) -> None:
    body = adapter_requests.openrlhf(COPY, TASK)
    response = team.http.post("/adapters/openrlhf/get_reward", json={**body, short: []})
    assert response.status_code == 422


@pytest.mark.parametrize("end", ["<|im_end|>", "</s>", "<|eot_id|>\n", "<eos><pad><pad>", ""])
@pytest.mark.parametrize("begin", [PROMPT, PROMPT[20:], f" {PROMPT}", PROMPT.rstrip()])
def test_the_completion_is_separated_from_prompt_and_tokens(
    team: JobClient, begin: str, end: str
) -> None:
    body = {"query": [f"{begin}{COPY}{end}"], "prompts": [PROMPT], "labels": [TASK]}
    answer = team.http.post("/adapters/openrlhf/get_reward", json=body).json()
    assert answer["extra_logs"]["valid"] == [1.0], answer


def test_a_program_in_the_prompt_is_not_the_completion(team: JobClient) -> None:
    prompt = f"Improve on this.\n{COPY}\n"
    body = {"query": [f"{prompt}I will not."], "prompts": [prompt], "labels": [TASK]}
    answer = team.http.post("/adapters/openrlhf/get_reward", json=body).json()
    assert answer["rewards"] == [-10.0]
    other = {"query": [COPY], "prompts": ["something else"], "labels": [TASK]}
    response = team.http.post("/adapters/openrlhf/get_reward", json=other)
    assert response.status_code == 422
    assert "prompt" in response.json()["detail"]


# slime


def test_slime_gets_a_number_or_an_object_with_its_reward_key(team: JobClient) -> None:
    body = adapter_requests.slime(COPY, TASK)
    number = team.http.post("/adapters/slime", json=body).json()
    assert isinstance(number, float)
    answer = team.http.post("/adapters/slime?reward_key=reward", json=body).json()
    assert set(answer) == {"reward", *MEASURED}
    assert answer["reward"] == number
    assert answer["duration_seconds"] > 0


# ROLL


def test_roll_submits_polls_and_gets_its_reward(team: JobClient, run_id: str) -> None:
    body = adapter_requests.roll(fenced(nap("1.571")), TASK)
    submitted = team.http.post(f"/adapters/roll/submit?run_id={run_id}", json=body).json()
    assert set(submitted) == {"errcode", "errmsg", "reward_request_id"}
    assert submitted["errcode"] == 0
    request_id = submitted["reward_request_id"]
    early = adapter_requests.ask_roll(team.http, request_id)
    assert (early["errcode"], early["reward_score"]) == (1, None)
    wait_until(lambda: adapter_requests.ask_roll(team.http, request_id)["errcode"] == 0)
    late = adapter_requests.ask_roll(team.http, request_id)
    assert set(late) == {
        *("errcode", "errmsg", "reward_score", "dimention_reward_score"),
        *("start_time", "end_time", "extra"),
    }
    assert late["reward_score"] == -10.0
    part = late["dimention_reward_score"]["reward_server"]
    assert part["score"] == late["reward_score"]
    assert part["debug_info"]["program"]["time_cost"] >= 1.5
    assert late["start_time"] < late["end_time"]
    assert set(late["extra"]) == MEASURED
    by_query = team.http.get("/adapters/roll/result", params={"reward_request_id": request_id})
    assert by_query.json() == late
    [found] = team.solutions(run_id)
    assert (found["step"], found["sample_id"]) == (3, "row-7/r-0")


def test_roll_names_the_run_by_project_and_experiment(team: JobClient, run_id: str) -> None:
    body = {**adapter_requests.roll(CRASH, TASK), "project_id": run_id, "experiment_id": 5}
    team.http.post("/adapters/roll/submit", json=body)
    wait_until(lambda: team.solutions(f"{run_id}/5"))


def test_two_rollouts_of_roll_with_one_text_are_two_jobs(team: JobClient) -> None:
    ids = {
        team.http.post(
            "/adapters/roll/submit", json=adapter_requests.roll(CRASH, TASK, name)
        ).json()["reward_request_id"]
        for name in ("r-1", "r-2", "r-1")
    }
    assert len(ids) == 2


def test_roll_gets_errors_with_an_errcode(team: JobClient) -> None:
    submitted = team.http.post(
        "/adapters/roll/submit", json=adapter_requests.roll(COPY, "no-such-task")
    )
    assert submitted.status_code == 200
    assert submitted.json()["errcode"] == 404
    assert submitted.json()["reward_request_id"] is None
    assert submitted.json()["errmsg"] == "there is no such task"
    unknown = adapter_requests.ask_roll(team.http, "00000000-0000-0000-0000-000000000000")
    assert (unknown["errcode"], unknown["reward_score"]) == (404, None)


def test_roll_gets_no_score_for_a_lost_job_and_may_run_it_again(team: JobClient) -> None:
    body = adapter_requests.roll(fenced(nap("63.571")), TASK)
    request_id = team.http.post("/adapters/roll/submit", json=body).json()["reward_request_id"]
    team.wait_for_program("63.571")
    team.cancel(request_id)
    ended = adapter_requests.ask_roll(team.http, request_id)
    assert (ended["errcode"], ended["reward_score"]) == (503, None)
    again = team.http.post("/adapters/roll/submit", json=body).json()
    assert again["errcode"] == 0
    team.wait_for_program("63.571")
    team.cancel(again["reward_request_id"])


@pytest.mark.parametrize("adapter", ["openrlhf", "slime", "nemo-gym"])
def test_a_job_without_a_reward_is_a_503(team: JobClient, adapter: str, run_id: str) -> None:
    path, make = POSTED[adapter]
    mark = f"64.{list(POSTED).index(adapter)}71"
    completion = fenced(nap(mark))
    with ThreadPoolExecutor(1) as pool:
        address = f"{path}?run_id={run_id}"
        asked = pool.submit(team.http.post, address, json=make(completion, TASK))
        team.wait_for_program(mark)
        team.cancel(_joined(team, adapter, completion, run_id))
        response = asked.result(60)
    assert response.status_code == 503
    assert response.json()["kind"] == "cancelled"


def _joined(team: JobClient, adapter: str, completion: str, run_id: str) -> str:
    """Return the job of a sample, by the key that its adapter derives."""
    name = "4/1" if adapter == "nemo-gym" else None
    sample = AdapterSample(adapter, Label(task_id=TASK), completion, run_id, name=name)
    body = sample.request().model_dump(exclude_none=True)
    job_id: str = team.http.post("/v1/jobs", json=body).json()["job_id"]
    return job_id


# NeMo-Gym


def test_nemo_gym_gets_its_row_back_with_a_reward(team: JobClient, run_id: str) -> None:
    body = adapter_requests.nemo_gym(
        COPY, TASK, run_id=run_id, verifier_metadata={"level": [1, None]}
    )
    answer = team.http.post("/adapters/nemo-gym/verify", json=body).json()
    added = {name: answer.pop(name) for name in ("reward", *MEASURED)}
    assert answer == body
    assert added["reward"] == score(team, COPY)["reward"]
    assert all(math.isfinite(value) for value in added.values())
    [found] = team.solutions(run_id)
    assert found["sample_id"] == "4/1"


def test_nemo_gym_reads_the_last_message_of_the_model(team: JobClient) -> None:
    body = adapter_requests.nemo_gym(COPY, TASK)
    first = {"type": "message", "role": "assistant", "content": [{"type": "output_text"}]}
    call = {"type": "function_call", "name": "x", "arguments": "{}", "call_id": "c"}
    body["response"]["output"] = [first, call, *body["response"]["output"]]
    verify = "/adapters/nemo-gym/verify"
    assert team.http.post(verify, json=body).json()["valid"] == 1.0
    body["response"]["output"] = [call]
    assert team.http.post(verify, json=body).json()["reward"] == -10.0


def test_nemo_gym_seeds_sessions_and_aggregates_metrics(team: JobClient) -> None:
    seeded = team.http.post(
        "/adapters/nemo-gym/seed_session", json=adapter_requests.nemo_gym(COPY, TASK)
    )
    assert (seeded.status_code, seeded.json()) == (200, {})
    rows = [
        {"_ng_task_index": task, "_ng_rollout_index": 0, "reward": reward, "note": "x", "ok": True}
        for task, reward in [(0, 1.0), (0, 3.0), (1, 8.0)]
    ]
    summed = team.http.post(
        "/adapters/nemo-gym/aggregate_metrics", json={"verify_responses": rows}
    ).json()
    assert set(summed) == {"group_level_metrics", "agent_metrics", "key_metrics"}
    assert summed["key_metrics"] == {"mean/reward": 4.0}
    assert summed["agent_metrics"]["max/reward"] == 8.0
    assert summed["agent_metrics"]["median/reward"] == 3.0
    assert summed["agent_metrics"]["mean/ok"] == 1.0
    first, second = summed["group_level_metrics"]
    assert (first["_ng_task_index"], first["mean/reward"]) == (0, 2.0)
    assert (second["_ng_task_index"], second["std/reward"]) == (1, 0.0)
    empty = team.http.post("/adapters/nemo-gym/aggregate_metrics", json={"verify_responses": []})
    assert empty.json() == {"group_level_metrics": [], "agent_metrics": {}, "key_metrics": {}}


# Keys


def test_an_api_key_may_be_in_the_url_or_in_the_header_of_roll(team: JobClient) -> None:
    url = team.http.base_url
    body = adapter_requests.slime("no code", TASK)

    def ask(key: str, **headers: str) -> int:
        address = url.copy_with(username="", password=key) if key else url
        return httpx.post(f"{address}/adapters/slime", json=body, headers=headers).status_code

    right = KEYS["guest"]
    basic = base64.b64encode(f"anybody:{right}".encode()).decode()
    assert ask(right) == 200
    assert ask("", Authorization=f"Basic {basic}") == 200
    assert ask("", **{"XRL-Authorization": f"Bearer {right}"}) == 200
    assert ask("") == 401
    assert ask(f"{right}x") == 401
    assert ask("", Authorization="Basic !") == 401
    assert ask("", Authorization=f"Basic {base64.b64encode(right.encode()).decode()}") == 401
    assert ask("", **{"XRL-Authorization": right}) == 401


def test_a_text_of_special_tokens_only_is_read_quickly() -> None:
    assert completion_in(PROMPT + "<s>" * 1_000_000, PROMPT).startswith("<s><s>")
    assert completion_in(PROMPT + "<|" * 1_000_000, PROMPT).startswith("<|<|")
