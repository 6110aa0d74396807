"""The OpenAPI document: the HTTP contract in machine-readable form.

FastAPI derives the document from the routes. This module adds short operation names for generated
clients, the authentication schemes, the media types that are really sent, and the problems that
follow from what an operation reads. Routes declare their other problems with `problem_responses`.
"""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI

from reward_server.api import problems

if TYPE_CHECKING:
    from collections.abc import Iterator

Part = dict[str, Any]

_DESCRIPTION = """\
Takes a language model's completion for a machine-learning task, runs the program in an isolated
box, grades its submission file, and answers with a reward and a measured duration.

A program that fails gets an answer with a reward. Every other error is a problem document
(RFC 9457, `application/problem+json`) with `kind`, `blame` and `retryable`; it never has a reward.
A method that a path does not support gets a 405 with `Allow`. After a 429 or 503 repeat the request
with the same idempotency key after `Retry-After` seconds, unless it says `"retryable": false`.
"""
_TAGS = {
    "scoring": "Score a program or a batch and wait for it.",
    "jobs": "Submit now and wait later, for one job or the first of many; cancel jobs.",
    "batches": "Submissions that are waited for together; a part of them may complete the batch.",
    "prompts": "Prompts for a model.",
    "tasks": "The tasks that can be scored.",
    "solutions": "Scored solutions: programs, output, lineage.",
    "runs": "Statistics of training runs.",
    "programs": "Bare programs without a task, for clients of SandboxFusion.",
    "adapters": "Endpoints in the wire formats of other trainers.",
    "operation": "Health, metrics and version. No API key is needed.",
}
_SECURITY: dict[str, Part] = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key of the server; a server without keys accepts every request.",
    },
    "basic": {
        "type": "http",
        "scheme": "basic",
        "description": "The key as the password, for clients that take `http://:KEY@host`.",
    },
    "xrl": {
        "type": "apiKey",
        "in": "header",
        "name": "XRL-Authorization",
        "description": "`Bearer KEY` in the header that ROLL sends.",
    },
}
_OPEN_PATHS = {"/livez", "/readyz", "/metrics", "/version"}
_BOUNDS = {"minimum", "maximum"}
_LARGEST_INTEGER = (1 << 63) - 1  # FastAPI writes bounds as floats, and this one is rounded up
# Clients that generate code from the document know these models by another name than ours.
_PUBLISHED_NAMES = {"ScoreAnswer": "Answer", "SortOrder": "Order"}
_OPERATION_IDS = {
    "submit": "submit_job",
    "cancel": "cancel_job",
    "export": "export_solutions",
    "prompts": "make_prompts",
}


class DocumentedApp(FastAPI):
    """An application with a completed OpenAPI document."""

    def openapi(self) -> Part:
        """Return the document, built once."""
        if not self.openapi_schema:
            document = super().openapi()
            self.openapi_schema = None  # no other thread gets the incomplete one
            self.openapi_schema = _complete(document)
        return self.openapi_schema


def render(document: Part) -> str:
    """Return a document as the text of `docs/openapi.json`."""
    return json.dumps(document, indent=2) + "\n"


def no_services() -> nullcontext[Any]:
    """Replace the services of an application that only documents itself."""
    return nullcontext()


def _complete(document: Part) -> Part:
    schemas: dict[str, Part] = document["components"]["schemas"]
    schemas |= problems.SCHEMAS
    for path, method, operation in _operations(document):
        is_open = path in _OPEN_PATHS
        _name(path, method, operation)
        operation["security"] = [] if is_open else [{name: []} for name in _SECURITY]
        _keep_models(operation, schemas)
        _document_problems(operation, is_open=is_open)
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    for name, published in _PUBLISHED_NAMES.items():
        schemas[published] = {**schemas.pop(name), "title": published}
    document["info"]["description"] = _DESCRIPTION
    document["tags"] = [{"name": name, "description": text} for name, text in _TAGS.items()]
    document["components"] = {
        "schemas": dict(sorted(schemas.items())),
        "responses": problems.describe(),
        "securitySchemes": _SECURITY,
    }
    _tidy(document)
    return document


def _operations(document: Part) -> Iterator[tuple[str, str, Part]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def _name(path: str, method: str, operation: Part) -> None:
    """Set the tag, the name and the summary of an operation."""
    first, *rest = path.removeprefix("/v1").strip("/").split("/")
    if first == "adapters":
        operation["operationId"] = "_".join(rest).replace("-", "_")
    else:
        operation["tags"] = [_tag_of(first)]
        address = re.sub(r"\W", "_", path) + f"_{method}"
        name = operation["operationId"].removesuffix(address)
        operation["operationId"] = _operation_id(name, path, method)
    operation["summary"] = operation["description"].split("\n")[0].rstrip(".")


def _tag_of(word: str) -> str:
    if word in _TAGS:
        return word
    if word == "run_code":
        return "programs"
    return "operation" if f"/{word}" in _OPEN_PATHS else "scoring"


def _operation_id(name: str, path: str, method: str) -> str:
    """Return the method name in a generated client: get_job, score, submit_batch."""
    named = _OPERATION_IDS.get(name, f"get_{name}" if method == "get" else name)
    return f"{named}_unversioned" if path.startswith("/score") else named


def _keep_models(operation: Part, schemas: dict[str, Part]) -> None:
    """Move the models of a request body to the shared components."""
    for name, model in operation.pop("x-models", {}).items():
        if schemas.setdefault(name, model) != model:
            message = f"two models are called {name}"
            raise ValueError(message)


def _document_problems(operation: Part, *, is_open: bool) -> None:
    """Add the problems that follow from what an operation reads."""
    responses: Part = operation["responses"]
    statuses = set() if is_open else {"401", "503"}
    if "requestBody" in operation:
        statuses |= {"413", "415", "422"}
    if any(one["in"] != "path" for one in operation.get("parameters", ())):
        statuses.add("422")
    else:
        responses.pop("422", None)  # added by FastAPI, never sent
    declared = {name for name, one in responses.items() if name[0] in "45" and "content" not in one}
    shared = {name: {"$ref": f"#/components/responses/{name}"} for name in statuses | declared}
    operation["responses"] = dict(sorted({**responses, **shared}.items()))


def _tidy(node: object) -> None:
    """Drop redundant titles, write integer bounds as integers, and rename references."""
    if isinstance(node, list):
        for one in node:
            _tidy(one)
    elif isinstance(node, dict):
        for name, value in node.items():
            if name in ("properties", "parameters"):
                parts = value.values() if isinstance(value, dict) else value
                for part in parts:
                    part.get("schema", part).pop("title", None)
            if name in _BOUNDS and node.get("type") == "integer":
                node[name] = min(int(value), _LARGEST_INTEGER)
            if name == "$ref" and value.rpartition("/")[2] in _PUBLISHED_NAMES:
                prefix, _, model = value.rpartition("/")
                node[name] = f"{prefix}/{_PUBLISHED_NAMES[model]}"
            _tidy(value)
