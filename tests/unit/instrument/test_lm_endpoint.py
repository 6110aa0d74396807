"""The client of the language model, against an endpoint that fails in every known way."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from reward_server.errors import SetupError
from reward_server.instrument.lm.endpoint import EndpointState, LmEndpoint
from reward_server.instrument.lm.prompts import LmRequest, Mode, build_request
from reward_server.instrument.lm.reply import LmReply, LmTrouble
from tests.support.lm_endpoints import (
    MODEL,
    ScriptedEndpoint,
    breaks_off,
    completion,
    fails,
    floods,
    hangs,
    marks,
    respond,
    says,
    sends,
    stalls,
    trickles,
    until,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tests.support.lm_endpoints import Behaviour

REQUEST = build_request("x = 1", Mode.INSERT)
ENOUGH_TO_OPEN = 5


@pytest.fixture
def scripted() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint() as endpoint:
        yield endpoint


@pytest.fixture
async def impatient(scripted: ScriptedEndpoint) -> AsyncIterator[LmEndpoint]:
    endpoint = LmEndpoint(scripted.url, MODEL, deadline_seconds=0.7, pause_seconds=0.05)
    yield endpoint
    await endpoint.aclose()


@pytest.fixture
async def patient(scripted: ScriptedEndpoint) -> AsyncIterator[LmEndpoint]:
    endpoint = LmEndpoint(scripted.url, MODEL, deadline_seconds=60, pause_seconds=0.05)
    yield endpoint
    await endpoint.aclose()


async def open_circuit(endpoint: LmEndpoint) -> None:
    for _ in range(ENOUGH_TO_OPEN):
        await endpoint.ask(REQUEST)


async def test_a_reply_is_returned(scripted: ScriptedEndpoint, patient: LmEndpoint) -> None:
    scripted.behave = says("hello")
    assert await patient.ask(REQUEST) == LmReply("hello")


@pytest.mark.parametrize("behave", [hangs, stalls, trickles], ids=lambda b: b.__name__)
async def test_a_reply_that_never_ends_is_cut_at_the_deadline(
    scripted: ScriptedEndpoint, impatient: LmEndpoint, behave: Behaviour
) -> None:
    scripted.behave = behave
    assert await impatient.ask(REQUEST) == LmReply(trouble=LmTrouble.LATE)


async def test_a_flood_is_cut_off(scripted: ScriptedEndpoint, patient: LmEndpoint) -> None:
    scripted.behave = floods
    assert await patient.ask(REQUEST) == LmReply(trouble=LmTrouble.OVERSIZED)
    assert len(scripted.requests) == 1


MALFORMED = {
    "no JSON": b"<html>502</html>",
    "a list": b"[]",
    "no choices": b"{}",
    "choices of another kind": b'{"choices": {"0": 1}}',
    "a choice that is none": b'{"choices": [3]}',
    "no message": b'{"choices": [{}]}',
    "a nest": b"[" * 100_000,
    "not text": b"\xff\xfe\x00",
}


@pytest.mark.parametrize("name", MALFORMED)
async def test_a_body_that_is_no_completion_is_malformed(
    scripted: ScriptedEndpoint, patient: LmEndpoint, name: str
) -> None:
    scripted.behave = sends(respond(MALFORMED[name]))
    assert (await patient.ask(REQUEST)).trouble is LmTrouble.MALFORMED


@pytest.mark.parametrize(
    ("data", "trouble"),
    [
        (b'{"choices": []}', LmTrouble.EMPTY),
        (completion(None), LmTrouble.EMPTY),
        (completion(""), LmTrouble.EMPTY),
        (completion(" \n"), LmTrouble.EMPTY),
        (completion(["a"]), LmTrouble.EMPTY),
        (completion('{"places": [', finish="length"), LmTrouble.CUT),
    ],
)
async def test_a_reply_without_text_is_final(
    scripted: ScriptedEndpoint, patient: LmEndpoint, data: bytes, trouble: LmTrouble
) -> None:
    scripted.behave = sends(respond(data))
    reply = await patient.ask(REQUEST)
    assert reply == LmReply(trouble=trouble)
    assert trouble.is_final
    assert len(scripted.requests) == 1


@pytest.mark.parametrize(
    "fault", [fails(500), fails(503), fails(429), fails(429, Retry_After="0.1"), breaks_off]
)
async def test_a_transient_failure_is_retried(
    scripted: ScriptedEndpoint, patient: LmEndpoint, fault: Behaviour
) -> None:
    scripted.script = [fault, fault]
    scripted.behave = says("third time")
    assert await patient.ask(REQUEST) == LmReply("third time")
    assert len(scripted.requests) == 3


@pytest.mark.parametrize(
    ("fault", "trouble"),
    [
        (fails(500), LmTrouble.FAILING),
        (fails(429, Retry_After="nan"), LmTrouble.BUSY),
        (fails(429, Retry_After="Wed, 21 Oct 2099 07:28:00 GMT"), LmTrouble.BUSY),
        (breaks_off, LmTrouble.DOWN),
    ],
)
async def test_a_request_has_at_most_three_attempts(
    scripted: ScriptedEndpoint, patient: LmEndpoint, fault: Behaviour, trouble: LmTrouble
) -> None:
    scripted.behave = fault
    assert await patient.ask(REQUEST) == LmReply(trouble=trouble)
    assert len(scripted.requests) == 3


@pytest.mark.parametrize(
    ("status", "trouble"),
    [
        (400, LmTrouble.REFUSED),
        (413, LmTrouble.REFUSED),
        (401, LmTrouble.FAILING),
        (404, LmTrouble.FAILING),
        (307, LmTrouble.FAILING),
    ],
)
async def test_a_permanent_failure_is_not_retried(
    scripted: ScriptedEndpoint, patient: LmEndpoint, status: int, trouble: LmTrouble
) -> None:
    scripted.behave = fails(status, Location="http://127.0.0.1:1/elsewhere")
    assert await patient.ask(REQUEST) == LmReply(trouble=trouble)
    assert len(scripted.requests) == 1


async def test_a_retry_after_beyond_the_deadline_is_not_waited_for(
    scripted: ScriptedEndpoint, impatient: LmEndpoint
) -> None:
    scripted.behave = fails(429, Retry_After="3600")
    assert (await impatient.ask(REQUEST)).trouble is LmTrouble.BUSY
    assert len(scripted.requests) == 1


async def test_failures_in_a_row_open_the_circuit_and_requests_fail_at_once(
    scripted: ScriptedEndpoint,
) -> None:
    endpoint = LmEndpoint(scripted.url, MODEL, deadline_seconds=0.5, pause_seconds=3600)
    scripted.behave = hangs
    await open_circuit(endpoint)
    assert endpoint.state is EndpointState.DOWN
    # On a busy machine a request may time out before the endpoint has read it.
    await until(lambda: len(scripted.requests) >= ENOUGH_TO_OPEN)
    asked = len(scripted.requests)
    assert asked == ENOUGH_TO_OPEN
    replies = await asyncio.gather(*(endpoint.ask(REQUEST) for _ in range(1000)))
    assert {reply.trouble for reply in replies} == {LmTrouble.DOWN}
    assert len(scripted.requests) == asked
    assert "degraded: down" in endpoint.describes
    await endpoint.aclose()


async def test_failures_between_replies_do_not_open_the_circuit(
    scripted: ScriptedEndpoint, patient: LmEndpoint
) -> None:
    scripted.script = [fails(404), fails(404), fails(404), fails(404), says("a")] * 2
    for _ in range(10):
        await patient.ask(REQUEST)
    assert patient.state is EndpointState.READY


async def test_refused_requests_do_not_open_the_circuit(
    scripted: ScriptedEndpoint, patient: LmEndpoint
) -> None:
    scripted.script = [fails(400)] * 8 + [says(None)] * 8
    for _ in range(16):
        await patient.ask(REQUEST)
    assert patient.state is EndpointState.READY


async def test_an_endpoint_that_recovers_is_used_again(
    scripted: ScriptedEndpoint, patient: LmEndpoint
) -> None:
    scripted.behave = says("here")
    await patient.start()
    scripted.stop_listening()
    await open_circuit(patient)
    assert patient.state is not EndpointState.READY
    assert (await patient.ask(REQUEST)).trouble is LmTrouble.DOWN
    scripted.start_listening()
    await until(lambda: patient.state is EndpointState.READY)
    assert await patient.ask(REQUEST) == LmReply("here")


async def test_the_circuit_closes_only_when_the_model_replies(scripted: ScriptedEndpoint) -> None:
    endpoint = LmEndpoint(scripted.url, MODEL, deadline_seconds=0.2, pause_seconds=0.02)
    scripted.behave = hangs
    await open_circuit(endpoint)
    looked = scripted.model_probes
    await until(lambda: scripted.model_probes > looked + 2)
    assert endpoint.state is not EndpointState.READY
    scripted.behave = says("awake")
    await until(lambda: endpoint.state is EndpointState.READY)
    await endpoint.aclose()


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 70, "127.0.0.1:1"])
async def test_an_unknown_host_is_an_endpoint_that_is_down(host: str) -> None:
    endpoint = LmEndpoint(f"http://{host}/v1", MODEL, pause_seconds=3600)
    assert (await endpoint.ask(REQUEST)).trouble is LmTrouble.DOWN
    await endpoint.start()
    assert endpoint.state is EndpointState.DOWN
    await endpoint.aclose()


@pytest.mark.parametrize("url", ["http://[::1/v1", "http://host:port/v1", "http://host:99999/v1"])
async def test_an_invalid_url_is_refused(url: str) -> None:
    with pytest.raises(SetupError, match="URL"):
        LmEndpoint(url, MODEL)


async def test_another_model_at_the_start_is_refused_by_name(
    scripted: ScriptedEndpoint, patient: LmEndpoint
) -> None:
    scripted.models = [{"id": "other/model"}, {"id": "third/model"}]
    with pytest.raises(SetupError, match=r"serves other/model, third/model, not some/frozen"):
        await patient.start()


async def test_another_model_that_comes_up_later_is_never_used(
    scripted: ScriptedEndpoint, patient: LmEndpoint
) -> None:
    scripted.stop_listening()
    await patient.start()
    scripted.models = [{"id": "other/model"}]
    scripted.start_listening()
    await until(lambda: patient.state is EndpointState.WRONG_MODEL)
    assert "it serves other/model" in patient.describes
    assert (await patient.ask(REQUEST)).trouble in (LmTrouble.WRONG_MODEL, LmTrouble.DOWN)
    assert scripted.requests == []
    scripted.models = [{"id": MODEL}]
    await until(lambda: patient.state is EndpointState.READY)


async def test_a_reply_by_another_model_is_not_used_and_opens_the_circuit(
    scripted: ScriptedEndpoint,
) -> None:
    endpoint = LmEndpoint(scripted.url, MODEL, pause_seconds=3600)
    scripted.behave = says("hello", model="changed/model")
    assert (await endpoint.ask(REQUEST)).trouble is LmTrouble.WRONG_MODEL
    assert endpoint.state is EndpointState.WRONG_MODEL
    assert (await endpoint.ask(REQUEST)).trouble is LmTrouble.WRONG_MODEL
    assert len(scripted.requests) == 1
    await endpoint.aclose()


async def test_the_context_is_the_endpoints_if_that_is_smaller(
    scripted: ScriptedEndpoint, patient: LmEndpoint
) -> None:
    scripted.models = [{"id": MODEL, "max_model_len": 4096}]
    await patient.start()
    assert patient.context_tokens == 4096
    scripted.models = [{"id": MODEL, "max_model_len": 1 << 20}]
    await patient.start()
    assert patient.context_tokens == 4096


async def test_how_the_model_samples_is_fixed(
    scripted: ScriptedEndpoint, patient: LmEndpoint
) -> None:
    scripted.behave = marks()
    for mode in Mode:
        await patient.ask(build_request("n = 10**6\nmax_tokens = 10**9", mode))
    inserting, rewriting = scripted.requests
    fixed: dict[str, Any] = {"model": MODEL, "temperature": 0, "n": 1, "seed": 0, "stream": False}
    assert {**inserting, **fixed} == inserting
    assert {**rewriting, **fixed} == rewriting
    assert inserting["max_tokens"] == 192
    assert inserting["response_format"]["json_schema"]["strict"] is True
    assert 256 < rewriting["max_tokens"] < 320
    assert set(rewriting) == {*fixed, "messages", "max_tokens"}
    assert set(inserting) == {*fixed, "messages", "max_tokens", "response_format"}


async def test_the_key_is_sent_and_connections_are_kept(scripted: ScriptedEndpoint) -> None:
    endpoint = LmEndpoint(scripted.url + "/", MODEL, api_key="secret-key")
    scripted.behave = says("a")
    for _ in range(3):
        await endpoint.ask(REQUEST)
    assert all("Authorization: Bearer secret-key\r\n" in head for head in scripted.headers)
    assert len(scripted._writers) == 1
    await endpoint.aclose()


async def test_requests_are_sent_concurrently(
    scripted: ScriptedEndpoint, patient: LmEndpoint
) -> None:
    everybody = asyncio.Event()

    async def meet(_: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        if scripted.peak_concurrency == 64:
            everybody.set()
        await everybody.wait()
        writer.write(respond(completion("together")))

    scripted.behave = meet
    requests = [build_request(f"x = {number}", Mode.INSERT) for number in range(64)]
    replies = await asyncio.gather(*map(patient.ask, requests))
    assert replies == [LmReply("together")] * 64


async def test_a_request_estimates_its_tokens() -> None:
    text = json.dumps(["line"] * 100)
    request = LmRequest(({"role": "user", "content": text},), 100)
    assert request.tokens > len(text) // 4 + 100
