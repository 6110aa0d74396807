"""Prompts of a training run: at the moment of use, never too long, and never an error."""

from __future__ import annotations

import pickle
import re
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.relays import Liar, TcpRelay, reply
from trainer_client import RewardServerError
from trainer_client.prompting import PromptRequest, PromptSource
from trainer_client.settings import RunSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from tests.conftest import RunningServer
    from tests.support.relays import Heard
    from trainer_client.prompting import Messages, TrainerPrompt

TASK = "spooky-author-identification"
OTHER = "random-acts-of-pizza"
COPY = (
    "import shutil\n"
    'shutil.copy("/workdir/{task}/prepared/public/sample_submission.csv", "submission.csv")\n'
    'print("validation loss: {mark}")\n'
)
PATH = "POST /v1/prompts"


def text_of(messages: Messages) -> str:
    return "".join(message["content"] for message in messages)


def by_words(messages: Messages) -> int:
    """Count as tokenizers do: letters in groups, whatever else one by one, and a template."""
    return 20 + len(re.findall(r"[A-Za-z]{1,6}|[^A-Za-z ]", text_of(messages)))


def by_characters(messages: Messages) -> int:
    return len(text_of(messages))


def by_pages(messages: Messages) -> int:
    return 3 + len(text_of(messages)) // 40


def dense_code(messages: Messages) -> int:
    """Count code three times as long as prose, as a tokenizer does that has seen little of it."""
    text = text_of(messages)
    code = "".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    return len(text) // 4 + len(code) // 2


def settings(url: str, run_id: str, **prompts: object) -> RunSettings:
    node = {"url": url, "tasks": [TASK], "run_id": run_id, "outage_seconds": 0, "prompts": prompts}
    return RunSettings.read(node)


def begun(
    settings: RunSettings, count: Callable[[Messages], int] = by_words, most: int = 1024
) -> PromptSource:
    source = PromptSource(settings, count, most)
    source.begin()
    return source


@pytest.fixture(scope="module")
def run_id() -> str:
    return str(uuid.uuid4())


@pytest.fixture(scope="module")
def steps(client: httpx.Client, run_id: str) -> dict[int, set[str]]:
    """Return the solutions of two steps."""

    def score(step: int, mark: int) -> str:
        code = COPY.format(task=TASK, mark=mark) + "# a, b, c\n" * mark
        body = {"task_id": TASK, "code": code, "run_id": run_id, "step": step}
        answer = client.post("/score", json=body).json()
        assert answer["valid"]
        solution_id: str = answer["solution_id"]
        return solution_id

    return {step: {score(step, 10 * step + n) for n in range(3)} for step in (1, 2)}


def parents(prompts: list[TrainerPrompt]) -> set[str]:
    return {str(prompt.parent_id) for prompt in prompts if prompt.parent_id is not None}


def test_half_of_the_prompts_improve_on_the_step_before(
    server: RunningServer, run_id: str, steps: dict[int, set[str]]
) -> None:
    source = begun(settings(server.url, run_id))
    ratio = source.budget_ratio.ratio
    second, third = (source.draw(PromptRequest(TASK, 64, seed=5, step=step)) for step in (2, 3))
    assert (parents(second), parents(third)) == (steps[1], steps[2])
    kinds = [prompt.kind for prompt in second]
    assert 16 < kinds.count("improve") < 48
    assert kinds.count("scratch") + kinds.count("improve") == 64
    assert {p.parent_id for p in second if p.kind == "scratch"} == {None}
    source.budget_ratio.ratio = ratio
    assert source.draw(PromptRequest(TASK, 64, seed=5, step=2)) == second
    assert source.draw(PromptRequest(TASK, 64, seed=9, step=2)) != second
    assert parents(source.draw(PromptRequest(TASK, 8, seed=5, step=1))) == set()
    assert source.fallbacks == 0


@pytest.mark.parametrize(
    ("count", "most"),
    [
        *((by_words, most) for most in (600, 1024, 6000)),
        *((by_characters, most) for most in (1500, 6000)),
        *((by_pages, most) for most in (40, 1024)),
        *((dense_code, most) for most in (500, 1024, 6000)),
    ],
)
def test_no_prompt_is_longer_than_it_may_be(
    server: RunningServer,
    run_id: str,
    steps: dict[int, set[str]],
    count: Callable[[Messages], int],
    most: int,
) -> None:
    del steps
    source = begun(settings(server.url, run_id, improve_fraction=1), count, most)
    singles = [source.draw(PromptRequest(TASK, 1, seed, step=3))[0] for seed in range(0, 24, 4)]
    drawn = [source.scratch(TASK), *singles, *source.draw(PromptRequest(TASK, 32, seed=1, step=3))]
    assert max(count(prompt.chat()) for prompt in drawn) <= most


def test_an_improve_prompt_that_is_too_long_is_requested_again(
    server: RunningServer, run_id: str, steps: dict[int, set[str]]
) -> None:
    with_budget = settings(server.url, run_id, improve_fraction=1)
    source = begun(with_budget, dense_code, 800)
    loose = source.budget_ratio.ratio
    drawn = source.draw(PromptRequest(TASK, 32, seed=1, step=3))
    assert parents(drawn) <= steps[2]
    assert sum(prompt.kind == "improve" for prompt in drawn) > 16
    assert source.budget_ratio.ratio < loose


def test_the_scratch_prompt_uses_the_token_limit(server: RunningServer) -> None:
    for count, most in ((by_words, 700), (by_pages, 60), (by_characters, 2000)):
        source = begun(settings(server.url, "r"), count, most)
        assert 0.85 * most <= count(source.scratch(TASK).chat()) <= most
    whole = begun(settings(server.url, "r"), by_pages, 5000).scratch(TASK)
    assert whole == begun(settings(server.url, "r"), by_pages, 9000).scratch(TASK)


def test_a_run_that_cannot_have_prompts_does_not_begin(server: RunningServer) -> None:
    with pytest.raises(ValueError, match=r"max_prompt_length=50: the shortest has \d\d\d tokens"):
        begun(settings(server.url, "r"), by_words, 50)
    unknown = RunSettings.read({"url": server.url, "tasks": ["no-such-task"], "run_id": "r"})
    with pytest.raises(ValueError, match="'no-such-task'"):
        begun(unknown)
    with pytest.raises(ValueError, match="no such tokenizer"):
        begun(settings(server.url, "r", tokenizer="qwen"))
    with pytest.raises(RewardServerError):
        begun(settings("http://127.0.0.1:1", "r"))


def made(
    kind: str = "scratch", parent_id: object = None, text: object = "Solve it."
) -> dict[str, Any]:
    return {"kind": kind, "messages": [{"role": "user", "content": text}], "parent_id": parent_id}


SOMEBODY = str(uuid.uuid4())
NONSENSE = {
    "no answer": None,
    "an error": reply({"kind": "store_error", "blame": "infra", "retryable": False}, 503),
    "a refusal": reply({"kind": "unknown_task", "blame": "request", "retryable": False}, 404),
    "another page": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n<html",
    "another object": reply({"answer": 42}),
    "too few": reply({"prompts": []}),
    "too many": reply({"prompts": [made()] * 3}),
    "no parent": reply({"prompts": [made("improve")]}),
    "a strange parent": reply({"prompts": [made("improve", "../x")]}),
    "a stranger's kind": reply({"prompts": [made("debug")]}),
    "no messages": reply({"prompts": [made() | {"messages": []}]}),
    "no words": reply({"prompts": [made(text=7)]}),
}


@pytest.mark.parametrize("nonsense", NONSENSE)
def test_a_malformed_reply_falls_back_and_backs_off(
    nonsense: str, caplog: pytest.LogCaptureFixture
) -> None:
    def answer(heard: Heard) -> bytes | None:
        is_first = not heard.body["improve_fraction"]
        return reply({"prompts": [made()]}) if is_first else NONSENSE[nonsense]

    with Liar(answer) as liar:
        source = begun(settings(liar.url, "r"))
        before = len(liar.of(PATH))
        drawn = [source.draw(PromptRequest(TASK, 1, n), seconds=0.2) for n in range(50)]
        asked = len(liar.of(PATH)) - before
    assert drawn == [[source.scratch(TASK)]] * 50
    assert source.fallbacks == 50
    assert asked <= 2  # no connection is tried twice in so short a time, but for a lost one
    said = [one for one in caplog.messages if "answers again" in one]
    assert len(said) == 1


def test_a_failing_tokenizer_falls_back_to_scratch_prompts(
    server: RunningServer, run_id: str, steps: dict[int, set[str]]
) -> None:
    def breaks(messages: Messages) -> int:
        if any(step in text_of(messages) for step in ("validation loss: 2",)):
            raise ZeroDivisionError
        return by_words(messages)

    del steps
    source = begun(settings(server.url, run_id, improve_fraction=1), breaks)
    assert source.draw(PromptRequest(TASK, 4, seed=0, step=3)) == [source.scratch(TASK)] * 4
    assert source.fallbacks == 4


def test_a_server_that_comes_back_is_asked_again(
    server: RunningServer,
    run_id: str,
    steps: dict[int, set[str]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    with TcpRelay(server.url) as relay:
        source = begun(settings(relay.url, run_id, improve_fraction=1))
    lost = source.draw(PromptRequest(TASK, 3, seed=0, step=3), seconds=1)
    assert lost == [source.scratch(TASK)] * 3
    assert source.draw(PromptRequest(TASK, 1, seed=0, step=3), seconds=1) == [source.scratch(TASK)]
    source._settings, source._client = settings(server.url, run_id, improve_fraction=1), None
    source._backoff._again_at = 0.0
    assert parents(source.draw(PromptRequest(TASK, 3, seed=0, step=3))) <= steps[2]
    assert source.fallbacks == 4
    said = [one for one in caplog.messages if "answers again" in one]
    assert len(said) == 2
    assert "answers again" in said[1]


def test_a_tokenizer_that_the_server_knows_is_named() -> None:
    def answer(heard: Heard) -> bytes:
        budget = heard.body["budget"]
        assert budget["tokenizer"] == "qwen"
        prompt = made("improve", SOMEBODY) if heard.body["improve_fraction"] else made()
        prompt["messages"][0]["content"] = "x" * (2 * budget["tokens"])  # by our count too long
        return reply({"prompts": [prompt] * heard.body["n"]})

    with Liar(answer) as liar:
        source = begun(settings(liar.url, "r", tokenizer="qwen"), by_characters, 1000)
        assert liar.of(PATH)[0].body["budget"] == {"tokens": 970, "tokenizer": "qwen"}
        drawn = source.draw(PromptRequest(TASK, 2, seed=0))
    assert [prompt.kind for prompt in drawn] == ["improve"] * 2
    assert all(prompt.characters <= 1000 for prompt in [*drawn, source.scratch(TASK)])


def test_the_request_has_the_settings_of_the_run() -> None:
    def answer(heard: Heard) -> bytes:
        return reply({"prompts": [made()] * heard.body["n"]})

    with Liar(answer) as liar:
        said = settings(liar.url, "run/1", strategy="softmax", scope="task", parents="any")
        begun(said).draw(PromptRequest(TASK, 7, seed=11, step=4))
        body = liar.of(PATH)[-1].body
    assert body.pop("budget").keys() == {"characters"}
    assert body == {
        "task_id": TASK,
        "run_id": "run/1",
        "n": 7,
        "improve_fraction": 0.5,
        "strategy": "softmax",
        "scope": "task",
        "parents": "any",
        "seed": 11,
        "step": 4,
        "wall_seconds": None,
    }


def test_without_improve_prompts_no_request_is_made(server: RunningServer) -> None:
    with TcpRelay(server.url) as relay:
        source = begun(settings(relay.url, "r", improve_fraction=0))
    assert source.draw(PromptRequest(TASK, 2, seed=0)) == [source.scratch(TASK)] * 2
    assert source.fallbacks == 0


def test_a_source_can_be_pickled(
    server: RunningServer, run_id: str, steps: dict[int, set[str]]
) -> None:
    del steps
    source = begun(settings(server.url, run_id))
    request = PromptRequest(TASK, 8, seed=3, step=3)
    ratio = source.budget_ratio.ratio
    before = source.draw(request)
    source.budget_ratio.ratio = ratio
    other = pickle.loads(pickle.dumps(source))  # noqa: S301
    assert other.draw(request) == before
