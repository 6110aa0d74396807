"""Hooks that Schemathesis loads to test this server.

Requests stay what they were drawn as, except where they would only cost time, where they would
be refused at once, or where JSON Schema cannot express a condition. Only parts
that are valid by themselves are touched, so that a request that was drawn as invalid stays so.
"""

from __future__ import annotations

import re
import uuid
import zlib
from collections import deque
from typing import TYPE_CHECKING, Any

import schemathesis
from pydantic import TypeAdapter, ValidationError
from schemathesis.core.failures import ServerError

from reward_server.api.schemas.answers import LostOut, ResultOut

if TYPE_CHECKING:
    from schemathesis import Case, CheckContext, HookContext, Response
    from schemathesis.core.failures import Failure

TASK = "spooky-author-identification"
SHORT_SECONDS = 0.05
FEW, MOST = 3, 10_000
Part = dict[str, Any]


_JOB_FIRST = re.compile(rb'\{"job_id":"([0-9a-f-]{36})"')
_RESULT: TypeAdapter[ResultOut | LostOut] = TypeAdapter(ResultOut | LostOut)
_job_ids: deque[str] = deque(maxlen=FEW)


@schemathesis.hook
def after_call(context: HookContext, case: Case[Any], response: Response) -> None:
    """Remember jobs, so that there are some to wait for."""
    del context, case
    found = _JOB_FIRST.match(response.content)
    if found is not None:
        _job_ids.append(found[1].decode())


@schemathesis.check
def every_line_is_a_result(ctx: CheckContext, response: Response, case: Case[Any]) -> None:
    """Look into a stream of lines, of which Schemathesis sees a text."""
    del ctx
    if not case.path.endswith("/score/batch") or response.status_code != 200:
        return
    for line in filter(bytes.strip, response.content.splitlines()):
        try:
            _RESULT.validate_json(line)
        except ValidationError as error:
            raise AssertionError(str(error)) from error


@schemathesis.hook
def filter_failure(
    context: HookContext, failure: Failure, case: Case[Any], response: Response
) -> bool:
    """Let a job that a request before cancelled have no reward: that 503 is the truth."""
    del context, case
    is_cancelled = response.status_code == 503 and b'"kind":"cancelled"' in response.content
    return not (is_cancelled and isinstance(failure, ServerError))


@schemathesis.hook
def before_call(context: HookContext, case: Case[Any], kwargs: Part) -> None:
    del context, kwargs
    if isinstance(case.path_parameters, dict):
        _aim(case.path_parameters)
    if isinstance(case.query, dict):
        _shorten(case.query)
        case.query.pop("cursor", None)  # a valid one comes from a list, and tests of lists have it
    if isinstance(case.body, dict):
        _make_likely(case.body, has_header_key="Idempotency-Key" in (case.headers or {}))


def _make_likely(body: Part, *, has_header_key: bool) -> None:
    """Change a drawn body in place so that the server is likely to accept it."""
    _thin_out(body)
    _even_out(body)
    _choose_once(body)
    _pack(body)
    _know(body)
    if has_header_key:
        body.pop("idempotency_key", None)  # the header and the body must agree
    for part in (body, *_items(body)):
        _shorten(part)
        _orphan(part)
        _aim(part)
    if isinstance(body.get("labels"), list):
        body["labels"] = [_aim({"label": one})["label"] for one in body["labels"]]
    if isinstance(body.get("reward_info"), dict):
        body["reward_info"].setdefault("task_id", TASK)


def _items(body: Part) -> list[Part]:
    """Return what stands for submissions in a body, wherever it is."""
    found = [body.get("label")]
    for name in ("items", "labels"):
        items = body.get(name)
        found += items if isinstance(items, list) else []
    return [one for one in found if isinstance(one, dict)]


def _shorten(part: Part) -> None:
    """Make a wait that is valid a short one."""
    seconds = part.get("wait_seconds")
    if isinstance(seconds, int | float) and SHORT_SECONDS < seconds <= 3600:
        part["wait_seconds"] = SHORT_SECONDS
    limit = part.get("wall_seconds")
    if isinstance(limit, int | float) and SHORT_SECONDS < limit <= 86_400:
        part["wall_seconds"] = 5  # not above the limit of any task


def _thin_out(body: Part) -> None:
    """Take a few of the items, and want no more than there are: JSON Schema cannot compare."""
    items, least = body.get("items"), body.get("min_complete")
    if not isinstance(items, list) or not 1 <= len(items) <= MOST:
        return
    body["items"] = items[:FEW]
    if isinstance(least, int | float) and least > 1:
        body["min_complete"] = min(least, len(body["items"]))


def _even_out(body: Part) -> None:
    """Give OpenRLHF's lists the same length, and every text its prompt."""
    lists = [body.get(name) for name in ("query", "prompts", "labels")]
    counts = [len(one) for one in lists if isinstance(one, list)]
    if len(counts) < len(lists) or not all(counts):
        return
    count = min(counts)
    body["query"], body["labels"] = (body[name][:count] for name in ("query", "labels"))
    body["prompts"] = ["" if isinstance(text, str) else text for text in body["prompts"][:count]]


def _choose_once(body: Part) -> None:
    """Leave out of a request for prompts what does not go with the rest."""
    if isinstance(body.get("parent_ids"), list):
        for name in ("run_id", "n", "strategy", "seed", "step", "parents", "scope"):
            body.pop(name, None)
        for name in ("improve_fraction", "temperature"):
            body.pop(name, None)
    if isinstance(body.get("budget"), dict):
        body["budget"] = {"characters": 20_000}


def _pack(body: Part) -> None:
    """Give a bare program a short time, and files that can be laid down and looked for."""
    seconds = body.get("run_timeout")
    if isinstance(seconds, int | float) and SHORT_SECONDS < seconds <= 86_400:
        body["run_timeout"] = 2
    files, names = body.get("files"), body.get("fetch_files")
    if isinstance(files, dict) and all(isinstance(one, str | None) for one in files.values()):
        body["files"] = {f"folder/{place}": "Zm9v" for place in range(len(files))}
    if isinstance(names, list) and 1 <= len(names) <= FEW and all(map(_is_short_text, names)):
        body["fetch_files"] = [f"folder/{place}" for place in range(len(names))]


def _is_short_text(one: object) -> bool:
    return isinstance(one, str) and 1 <= len(one) <= 200


def _know(body: Part) -> None:
    """Ask for jobs that there are, now and then."""
    ids = body.get("job_ids")
    if not isinstance(ids, list) or not 1 <= len(ids) <= MOST or not _job_ids:
        return
    if len(ids) % 2 and all(isinstance(one, str) and 1 <= len(one) <= 256 for one in ids):
        body["job_ids"] = list(_job_ids)


def _orphan(part: Part) -> None:
    """Take away a parent that nobody knows; what is no id at all stays."""
    try:
        uuid.UUID(part.get("parent_id", ""))
    except (ValueError, AttributeError, TypeError):
        return
    part["parent_id"] = None


def _aim(part: Part) -> Part:
    """Let half of the tasks exist: of all texts that can be drawn none is the name of one."""
    for name in ("task_id", "label"):
        text = part.get(name)
        if not isinstance(text, str) or not 1 <= len(text) <= 256:
            continue
        if text.lstrip().startswith("{") or zlib.crc32(repr(part).encode()) % 2:
            part[name] = TASK
    return part
