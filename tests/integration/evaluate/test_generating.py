"""Whatever an endpoint does, a sample is generated, lost, or the evaluation ends."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.lm_endpoints import (
    breaks_off,
    completion,
    fails,
    hangs,
    respond,
    says,
    sends,
    stalls,
)
from trainer_client.evaluate import endpoint as endpoint_module
from trainer_client.evaluate.endpoint import (
    EndpointRefusedError,
    ModelEndpoint,
    NotGeneratedError,
    Sampling,
)

if TYPE_CHECKING:
    from tests.support.lm_endpoints import Behaviour, ScriptedEndpoint

SAMPLING = Sampling("m", 0.7, 0.9, 64)
MESSAGES = [{"role": "user", "content": "Write a program."}]


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint_module, "_FIRST_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(endpoint_module, "_LONGEST_PAUSE_SECONDS", 0.01)


def connect(
    endpoint: ScriptedEndpoint, *, seconds: float = 60, concurrency: int = 8
) -> ModelEndpoint:
    url, key = endpoint.url, "a-key"
    return ModelEndpoint(url, SAMPLING, key, deadline_seconds=seconds, concurrency=concurrency)


async def test_a_sample_is_asked_for_as_planned(endpoint: ScriptedEndpoint) -> None:
    endpoint.behave = says("text \ud800", finish="length")
    async with connect(endpoint) as model:
        generated = await model.generate(MESSAGES, 17)
    assert (generated.completion, generated.finish_reason) == ("text \ud800", "length")
    assert (generated.prompt_tokens, generated.completion_tokens) == (None, None)
    assert endpoint.requests == [
        {
            "model": "m",
            "messages": MESSAGES,
            "temperature": 0.7,
            "top_p": 0.9,
            "max_tokens": 64,
            "seed": 17,
            "n": 1,
            "stream": False,
        }
    ]
    assert "authorization: bearer a-key" in endpoint.headers[0].lower()


@pytest.mark.parametrize(
    "fault",
    [
        fails(500),
        fails(503, Retry_After="0.01"),
        fails(429, Retry_After="Mon, 01 Jan 2024 00:00:00 GMT"),
        fails(429, Retry_After="nonsense"),
        sends(respond(b"not JSON")),
        sends(respond(b"[" * 100_000)),
        sends(respond(b'{"choices": []}')),
        sends(respond(b'{"choices": [{"message": {"content": null}}]}')),
        sends(respond(b'{"choices": [{"message": {"content": 5}, "finish_reason": "stop"}]}')),
        breaks_off,
    ],
)
async def test_a_passing_error_is_retried(endpoint: ScriptedEndpoint, fault: Behaviour) -> None:
    endpoint.script = [fault, fault]
    endpoint.behave = says("at last")
    async with connect(endpoint) as model:
        assert (await model.generate(MESSAGES, 1)).completion == "at last"
    assert len(endpoint.requests) == 3


async def test_a_missing_text_is_an_empty_completion(endpoint: ScriptedEndpoint) -> None:
    endpoint.behave = says(None, finish="length")
    async with connect(endpoint) as model:
        assert (await model.generate(MESSAGES, 1)).completion == ""


@pytest.mark.parametrize(
    ("fault", "seconds", "said"),
    [
        (hangs, 0.3, "no completion in 0.3 seconds"),
        (stalls, 0.3, "no completion in 0.3 seconds"),
        (fails(429, Retry_After="3600"), 60, "status 429"),
        (sends(respond(b"too long\n a prompt", 400)), 60, "status 400: too long a prompt"),
        (fails(502), 60, "status 502"),
    ],
)
async def test_a_lasting_error_loses_the_sample(
    endpoint: ScriptedEndpoint, fault: Behaviour, seconds: float, said: str
) -> None:
    endpoint.behave = fault
    async with connect(endpoint, seconds=seconds) as model:
        with pytest.raises(NotGeneratedError, match=said):
            await model.generate(MESSAGES, 1)
        endpoint.behave = says("well")
        assert (await model.generate(MESSAGES, 1)).completion == "well"
    assert len(endpoint.requests) <= endpoint_module._ATTEMPTS + 1


async def test_a_flood_is_cut_off(
    endpoint: ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint_module, "_MOST_BYTES", 1 << 16)
    endpoint.behave = sends(respond(completion("x" * (1 << 17))))
    async with connect(endpoint) as model:
        with pytest.raises(NotGeneratedError, match="more than 65536 bytes"):
            await model.generate(MESSAGES, 1)


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_an_error_of_all_samples_ends_the_evaluation(
    endpoint: ScriptedEndpoint, status: int
) -> None:
    endpoint.behave = sends(respond(b"no a-key", status))
    async with connect(endpoint) as model:
        with pytest.raises(EndpointRefusedError, match=rf"status {status}: no \*\*\*"):
            await model.generate(MESSAGES, 1)
    assert len(endpoint.requests) == 1


async def test_an_endpoint_that_is_gone_is_given_up(endpoint: ScriptedEndpoint) -> None:
    async with connect(endpoint) as model:
        endpoint.stop_listening()
        for _ in range(15):
            with pytest.raises(NotGeneratedError, match="does not answer"):
                await model.generate(MESSAGES, 1)
        with pytest.raises(EndpointRefusedError, match="16 samples in a row"):
            await model.generate(MESSAGES, 1)


async def test_concurrency_is_limited(endpoint: ScriptedEndpoint) -> None:
    answer = says("x")

    async def takes_a_while(body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.05)
        await answer(body, writer)

    endpoint.behave = takes_a_while
    async with connect(endpoint, concurrency=3) as model:
        await asyncio.gather(*(model.generate(MESSAGES, seed) for seed in range(20)))
    assert len(endpoint.requests) == 20
    assert endpoint.peak_concurrency <= 3
