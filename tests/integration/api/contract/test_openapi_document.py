"""The OpenAPI document is complete, and equal in the file, the command and the server."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from reward_server.api.app import create_app
from reward_server.api.openapi import no_services
from tests.conftest import COMMAND, ROOT

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

KEPT = ROOT / "docs" / "openapi.json"
OPEN = {"get_livez", "get_readyz", "get_metrics", "get_version"}
SUBMITS = {"score", "score_unversioned", "submit_job", "submit_batch", "stream_batch"}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return create_app(no_services).openapi()


@pytest.fixture(scope="module")
def operations(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found = [operation for path in document["paths"].values() for operation in path.values()]
    named = {operation["operationId"]: operation for operation in found}
    assert len(named) == len(found)
    return named


def run(*options: object) -> str:
    words = [str(COMMAND), "openapi", *map(str, options)]
    # No settings and no data directory: the command needs neither a database nor a sandbox.
    return subprocess.run(words, env={}, capture_output=True, text=True, check=True).stdout


def outline(document: dict[str, Any]) -> dict[str, Any]:
    """Return what clients rely on; other versions of the packages may word the rest differently."""
    operations = {
        f"{method} {path}": (
            operation["operationId"],
            sorted(operation["responses"]),
            sorted(one["name"] for one in operation.get("parameters", ())),
        )
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    models = {
        name: (sorted(model.get("properties", ())), sorted(model.get("required", ())))
        for name, model in document["components"]["schemas"].items()
    }
    return {**operations, **models}


def test_the_kept_copy_is_what_the_command_prints(tmp_path: Path) -> None:
    printed = run()
    remedy = "docs/openapi.json is old: reward-server openapi --output docs/openapi.json"
    assert outline(json.loads(printed)) == outline(json.loads(KEPT.read_text())), remedy
    assert run("--output", tmp_path / "document.json") == ""
    assert (tmp_path / "document.json").read_text() == printed


def test_the_server_shows_the_same_document(client: httpx.Client) -> None:
    assert client.get("/openapi.json").json() == json.loads(run())


def test_every_operation_has_a_name_a_summary_and_a_known_tag(
    document: dict[str, Any], operations: dict[str, dict[str, Any]]
) -> None:
    tags = {tag["name"] for tag in document["tags"]}
    for name, operation in operations.items():
        assert name.isidentifier(), name
        assert "__" not in name, name
        assert operation["summary"].lower() != name.replace("_", " ")
        assert set(operation["tags"]) < tags, name
    assert {"get_job", "cancel_job", "submit_job", "score", "make_prompts"} <= operations.keys()


def test_models_have_names_that_a_generated_client_can_use(document: dict[str, Any]) -> None:
    names = document["components"]["schemas"].keys()
    assert {"Answer", "Problem", "ScoreRequest", "JobRequest", "BatchRequest"} <= names
    assert not [name for name in names if "__" in name or "-" in name]
    assert not names & {"HTTPValidationError", "ValidationError"}


def test_the_document_requires_a_key_where_the_server_does(
    document: dict[str, Any], operations: dict[str, dict[str, Any]]
) -> None:
    schemes = document["components"]["securitySchemes"]
    assert schemes.keys() == {"bearer", "basic", "xrl"}
    for name, operation in operations.items():
        named = {scheme for way in operation["security"] for scheme in way}
        assert named == (set() if name in OPEN else schemes.keys()), name
        assert ("401" in operation["responses"]) == (name not in OPEN), name


def test_every_error_is_a_problem_document(
    document: dict[str, Any], operations: dict[str, dict[str, Any]]
) -> None:
    shared = document["components"]["responses"]
    for status, response in shared.items():
        assert response["content"].keys() == {"application/problem+json"}
        assert ("Retry-After" in response.get("headers", {})) == (status in {"429", "503"})
    for name, operation in operations.items():
        refused = {s: one for s, one in operation["responses"].items() if s >= "400"}
        for status, response in refused.items():
            if (name, status) != ("get_readyz", "503"):
                assert response == {"$ref": f"#/components/responses/{status}"}
        assert ("requestBody" in operation) <= ({"413", "415", "422"} <= refused.keys()), name
        assert (name in SUBMITS) <= ({"404", "409", "429", "503"} <= refused.keys()), name


def test_responses_that_are_not_json_have_a_media_type(
    operations: dict[str, dict[str, Any]],
) -> None:
    stream = operations["stream_batch"]["responses"]["200"]
    assert stream["content"].keys() == {"application/x-ndjson"}
    assert "Batch-Id" in stream["headers"]
    exported = operations["export_solutions"]["responses"]["200"]["content"]
    assert exported.keys() == {"application/x-ndjson"}
    assert operations["get_metrics"]["responses"]["200"]["content"].keys() == {"text/plain"}


@pytest.mark.parametrize("name", ["score", "score_unversioned", "submit_job"])
def test_the_idempotency_key_header_is_documented(
    operations: dict[str, dict[str, Any]], name: str
) -> None:
    [header] = operations[name]["parameters"]
    assert (header["name"], header["in"]) == ("Idempotency-Key", "header")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/score", "POST"),
        ("PUT", "/v1/jobs/some", "GET, DELETE"),
        ("POST", "/livez", "GET"),
        ("DELETE", "/v1/jobs", "POST"),
        ("GET", "/v1/jobs/wait", "POST"),
        ("DELETE", "/v1/jobs/cancel", "POST"),
    ],
)
def test_a_405_names_the_allowed_methods(
    client: httpx.Client, method: str, path: str, allowed: str
) -> None:
    response = client.request(method, path)
    assert response.status_code == 405
    assert response.headers["allow"] == allowed
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert problem["detail"] == f"this path takes {allowed} and not {method}"
    assert problem["kind"] == "invalid_request"


def test_a_path_outside_of_the_document_is_not_found(client: httpx.Client) -> None:
    response = client.get("/v2/score")
    assert response.status_code == 404
    assert response.json()["kind"] == "not_found"
