"""Clients that were written for SandboxFusion, as they are: veRL's own, and its SDK."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
import requests
import sandbox_fusion
from sandbox_fusion import RunCodeRequest, RunStatus, SummaryMapping
from verl.utils.reward_score import sandbox_fusion as verl_scores
from verl.utils.reward_score.sandbox_fusion import utils as verl_client

from reward_server.sandbox.bubblewrap.cgroups import missing_limits

if TYPE_CHECKING:
    from tests.conftest import RunningServer

# Without a place at once veRL's client would go before the server does: two cores are shared.
SECONDS = 60
DOUBLE = "print(int(input()) * 2)"
MAPPING = SummaryMapping(
    Success="good", Failed="bad", RunFailed="crashed", RunTimeout="late", CompileFailed="odd"
)


@pytest.fixture
def url(server: RunningServer) -> str:
    return f"{server.url}/run_code"


def call(url: str, code: str, **fields: Any) -> tuple[dict[str, Any] | None, str | None]:
    asked = {"stdin": None, "compile_timeout": SECONDS, "run_timeout": SECONDS}
    answer: tuple[dict[str, Any] | None, str | None] = verl_client.call_sandbox_api(
        sandbox_fusion_url=url, code=code, **{**asked, "memory_limit_mb": 256, **fields}
    )
    return answer


def check(url: str, code: str, cases: dict[str, Any], **fields: Any) -> tuple[Any, list[Any]]:
    results, details = verl_client.check_correctness(
        url, cases, code, **{"timeout": SECONDS, "memory_limit_mb": 256, **fields}
    )
    return results, details


def test_verls_call_gets_every_field_it_reads(url: str) -> None:
    answer, error = call(url, "print(input())", stdin="hello")
    assert error is None
    assert answer is not None
    assert answer["status"] == "Success"
    assert answer["compile_result"] is None
    result = answer["run_result"]
    assert (result["status"], result["return_code"]) == ("Finished", 0)
    assert (result["stdout"], result["stderr"]) == ("hello\n", "")
    assert result["execution_time"] > 0


def test_verl_tells_right_from_wrong_answers(url: str) -> None:
    cases = {"inputs": ["1", "2", "3", "4"], "outputs": ["2", "4", "7", "8"]}
    results, details = check(url, DOUBLE, cases)
    assert results == [True, True, False, True]
    assert [one["status"] for one in details] == ["success", "success", "wrong_answer", "success"]
    assert details[2]["stdout"] == "6\n"
    assert all(one["duration"] > 0 and one["exit_code"] == 0 for one in details)
    assert all(one["api_request_error"] is None for one in details)


def test_verl_names_a_crash_and_a_timeout(url: str) -> None:
    results, details = check(url, "print(1 / int(input()))", {"inputs": ["0"], "outputs": ["1"]})
    assert results == [-2]
    assert details[0]["status"] == "runtime_error"
    assert "ZeroDivisionError" in details[0]["stderr"]
    late = {"inputs": [None, None], "outputs": ["1", "1"]}
    results, details = check(url, "print(1)\nwhile True: pass", late, timeout=8)
    assert results == [-3, -3]
    assert {one["status"] for one in details} == {"timeout"}
    assert {one["stdout"] for one in details} == {"1\n"}


def test_verl_reports_exhausted_memory_by_its_name(url: str) -> None:
    code = "x = []\nwhile True: x.append(bytearray(10**7))"
    results, details = check(url, code, {"inputs": [""], "outputs": ["1"]})
    assert results == [-2]
    kind = "nonzero_exit" if missing_limits() else "oom"
    assert details[0]["api_response"]["run_result"]["error_kind"] == kind


def test_verl_calls_functions_and_methods_by_name(url: str) -> None:
    cases = {"inputs": ["1\n2", "[3]\n[4]"], "outputs": ["3", "[3, 4]"], "fn_name": "combine"}
    assert check(url, "def combine(a, b): return a + b", cases)[0] == [True, True]
    method = "class Solution:\n    def combine(self, a, b): return a + b"
    assert check(url, method, cases)[0] == [True, True]
    missing = check(url, "def other(a, b): return a + b", cases)
    assert missing[0] == [False, False]
    assert "not found" in missing[1][0]["stderr"]


def test_verl_appends_assertions(url: str) -> None:
    cases = {
        "inputs": ["", ""],
        "outputs": [None, None],
        "assert_case": ["assert f(1) == 2", "assert f(1) == 3"],
    }
    results, details = check(url, "def f(x): return x + 1", cases)
    assert results == [True, -2]
    assert "AssertionError" in details[1]["stderr"]


@pytest.mark.parametrize("is_continuous", [True, False])
def test_verls_score_is_the_share_of_cases_that_pass(url: str, is_continuous: bool) -> None:  # noqa: FBT001
    cases = json.dumps({"inputs": ["1", "2", "3", "4"], "outputs": ["2", "4", "6", "9"]})
    score, details = verl_scores.compute_score(
        url,
        threading.Semaphore(2),
        256,
        f"It doubles.\n```python\n{DOUBLE}\n```",
        cases,
        continuous=is_continuous,
        timeout=SECONDS,
    )
    assert score == 0.75
    assert len(details) == 4


def test_more_cases_than_slots_all_run(url: str) -> None:
    numbers = range(40)
    cases = {"inputs": [str(n) for n in numbers], "outputs": [str(2 * n) for n in numbers]}
    results, _ = check(url, DOUBLE, cases)
    assert results == [True] * len(numbers)


def test_verl_retries_what_found_no_slot(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    statuses: list[int] = []
    post = requests.post

    def refuse_first(*args: Any, **fields: Any) -> requests.Response:
        response = post(*args, **fields)
        if not statuses:
            response.status_code = 504  # what the server says when no place came free in time
        statuses.append(response.status_code)
        return response

    monkeypatch.setattr(verl_client.requests, "post", refuse_first)
    answer, error = call(url, "print(1)")
    assert (statuses, error) == ([504, 200], None)
    assert answer is not None
    assert answer["status"] == "Success"


def test_a_refusal_is_an_error_of_verls_call(url: str) -> None:
    answer, error = call(url, "int main() {}", language="cpp")
    assert answer is None
    assert error is not None
    assert "422" in error
    results, details = check(url, "x", {"inputs": [""], "outputs": ["1"]}, language="cpp")
    assert results == [-1]
    assert details[0]["status"] == "api_error"


def test_the_sdk_runs_code(server: RunningServer) -> None:
    asked = RunCodeRequest(
        code="import sys\nprint(open('a').read() + input())\nopen('b', 'w').write('left')",
        language="python",
        stdin="typed",
        files={"a": base64.b64encode(b"given, ").decode(), "none": None},
        fetch_files=["b"],
        compile_timeout=SECONDS,
        run_timeout=SECONDS,
    )
    answer = sandbox_fusion.run_code(asked, endpoint=server.url, max_attempts=1)
    assert answer.status is RunStatus.Success
    assert answer.message == ""
    assert answer.compile_result is None
    assert answer.run_result is not None
    assert answer.run_result.stdout == "given, typed\n"
    assert answer.run_result.return_code == 0
    assert base64.b64decode(answer.files["b"]) == b"left"


@pytest.mark.parametrize(
    ("code", "expected"),
    [("pass", "good"), ("raise SystemExit(3)", "crashed"), ("while True: pass", "late")],
)
def test_the_sdk_sums_an_answer_up(server: RunningServer, code: str, expected: str) -> None:
    asked = RunCodeRequest(code=code, language="python", run_timeout=3, compile_timeout=SECONDS)
    answer = sandbox_fusion.run_code(asked, endpoint=server.url, max_attempts=1)
    assert sandbox_fusion.summary_run_code_result(answer, MAPPING) == expected


def test_the_sdk_runs_code_without_blocking(server: RunningServer) -> None:
    async def run_all() -> list[Any]:
        asked = [
            RunCodeRequest(code=f"print({n})", language="python", compile_timeout=SECONDS)
            for n in range(8)
        ]
        return await asyncio.gather(
            *(sandbox_fusion.run_code_async(one, endpoint=server.url) for one in asked)
        )

    answers = asyncio.run(run_all())
    assert [answer.run_result.stdout for answer in answers] == [f"{n}\n" for n in range(8)]


def test_the_sdk_raises_what_cannot_be_run(server: RunningServer) -> None:
    asked = RunCodeRequest(code="int main() {}", language="cpp")
    with pytest.raises(Exception, match="422"):
        sandbox_fusion.run_code(asked, endpoint=server.url, max_attempts=1)
