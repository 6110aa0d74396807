from __future__ import annotations

import json

import pytest

from reward_server.instrument.lm.reply import LmReply, LmTrouble, read_reply


def body(usage: object, finish: str = "stop") -> bytes:
    choice = {"message": {"role": "assistant", "content": "hello"}, "finish_reason": finish}
    return json.dumps({"model": "m", "choices": [choice], "usage": usage}).encode()


def test_an_answer_tells_what_it_cost() -> None:
    usage = {"prompt_tokens": 700, "completion_tokens": 40, "total_tokens": 740}
    assert read_reply(body(usage), "m") == LmReply("hello", None, 700, 40)


def test_an_answer_that_was_cut_off_has_its_cost_too() -> None:
    reply = read_reply(body({"prompt_tokens": 7, "completion_tokens": 4}, "length"), "m")
    assert reply == LmReply("", LmTrouble.CUT, 7, 4)


@pytest.mark.parametrize(
    "usage", [None, [], "much", {}, {"prompt_tokens": "7"}, {"prompt_tokens": -1}]
)
def test_a_cost_that_cannot_be_read_is_none(usage: object) -> None:
    assert read_reply(body(usage), "m") == LmReply("hello")
