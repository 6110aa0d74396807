"""Malformed requests on every route get a problem document and create nothing."""

from __future__ import annotations

import json
import re
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.job_client import TASK

if TYPE_CHECKING:
    import httpx

POSTS = ["/score", "/v1/score", "/v1/jobs", "/v1/jobs/wait", "/v1/batches", "/score/batch"]
POSTS += ["/v1/score/batch", "/v1/prompts", "/v1/jobs/cancel", "/adapters/openrlhf/get_reward"]
POSTS += ["/adapters/slime", "/adapters/roll/submit", "/adapters/nemo-gym/verify"]
POSTS += ["/adapters/nemo-gym/aggregate_metrics", "/run_code"]
TAKES_ANY_OBJECT = "/adapters/nemo-gym/seed_session"
GETS = ["/v1/jobs/{}", "/v1/batches/{}", "/v1/solutions/{}", "/v1/tasks/{}"]
BODIES = {
    "not JSON": b"task_id=1",
    "truncated": b'{"items": [{"task_id": "',
    "not UTF-8": b'{"task_id": "\xff"}',
    "a list": b"[]",
    "a number": b"1",
    "null": b"null",
    "empty": b"",
    "nothing in it": b"{}",
    "nested too deep": b"[" * 100_000,
    "an endless number": b'{"step": ' + b"9" * 10_000 + b"}",
    "no number": b'{"wait_seconds": Infinity}',
    "a key twice": b'{"items": [], "items": []}',
    "unknown fields": b'{"callback_url": "http://127.0.0.1"}',
}
_scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=8,
)
_names = [
    *("task_id", "completion", "code", "run_id", "step", "sample_id", "idempotency_key"),
    *("parent_id", "prompt_kind", "priority", "wall_seconds", "wait_seconds", "items", "job_ids"),
    *("min_complete", "rest", "n", "improve_fraction", "strategy", "seed", "budget", "up_to_step"),
    *("language", "compile_timeout", "run_timeout", "memory_limit_MB", "stdin", "fetch_files"),
]
_bodies = st.dictionaries(st.sampled_from(_names) | st.text(max_size=9), _values, max_size=6)


def assert_refused(response: httpx.Response) -> None:
    assert 400 <= response.status_code < 500, (response.status_code, response.text)
    assert response.headers["content-type"] == "application/problem+json"
    assert {"kind", "blame", "retryable"} <= response.json().keys()
    assert "Traceback" not in response.text


def test_every_route_with_a_body_is_covered_here(client: httpx.Client) -> None:
    paths: dict[str, Any] = client.get("/openapi.json").json()["paths"]
    posted = {path for path, ways in paths.items() if "post" in ways}
    assert posted == {*POSTS, TAKES_ANY_OBJECT}


def test_all_references_in_the_document_resolve(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    names = set(re.findall(r'"\$ref": "([^"]*)"', json.dumps(document)))
    assert names
    for name in names:
        part: Any = document
        for key in name.removeprefix("#/").split("/"):
            part = part[key]
        assert part


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("path", POSTS)
def test_a_malformed_body_is_an_invalid_request(client: httpx.Client, path: str, body: str) -> None:
    json_type = {"Content-Type": "application/json"}
    assert_refused(client.post(path, content=BODIES[body], headers=json_type))


@pytest.mark.parametrize("path", POSTS)
def test_a_huge_body_is_refused_before_it_is_read(client: httpx.Client, path: str) -> None:
    connection = HTTPConnection(client.base_url.host, client.base_url.port or 80, timeout=60)
    connection.putrequest("POST", path)
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Content-Length", str(10**12))
    connection.endheaders()
    response = connection.getresponse()
    assert response.status == 413
    assert json.loads(response.read())["kind"] == "too_large"
    connection.close()


@pytest.mark.parametrize("path", POSTS)
def test_a_form_is_refused(client: httpx.Client, path: str) -> None:
    response = client.post(path, data={"task_id": TASK, "code": "print(1)"})
    assert_refused(response)
    assert response.status_code == 415


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/jobs/wait", "/v1/batches"])
def test_any_body_gets_an_answer_or_a_problem(client: httpx.Client, path: str) -> None:
    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
    @given(_bodies)
    def send(body: dict[str, Any]) -> None:
        content = json.dumps(body).encode("utf-8", "surrogatepass")
        headers = {"Content-Type": "application/json"}
        assert_refused(client.post(path, content=content, headers=headers))

    send()


@pytest.mark.parametrize("path", GETS)
def test_an_unknown_path_is_not_found(client: httpx.Client, path: str) -> None:
    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.text(min_size=1, max_size=40).filter(lambda text: "/" not in text))
    def look(name: str) -> None:
        address = path.format(quote(name.encode("utf-8", "replace"), safe=""))
        response = client.get(address)
        if address.rstrip(".") + "/" not in ("/v1/jobs/", "/v1/tasks/", "/v1/solutions/"):
            assert_refused(response)

    look()


@pytest.mark.parametrize("seconds", ["-1", "nan", "inf", "1e9", "x", ""])
@pytest.mark.parametrize("path", GETS[:2])
def test_an_invalid_wait_is_refused(client: httpx.Client, path: str, seconds: str) -> None:
    response = client.get(path.format("x"), params={"wait_seconds": seconds})
    assert_refused(response)
    assert response.status_code == 422


@pytest.mark.parametrize("key", ["k" * 257, ""])
def test_a_key_in_the_header_has_a_limited_length(client: httpx.Client, key: str) -> None:
    body = {"task_id": "unknown", "code": "print(1)"}
    assert_refused(client.post("/v1/jobs", json=body, headers={"Idempotency-Key": key}))
