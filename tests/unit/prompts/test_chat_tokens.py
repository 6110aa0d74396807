"""Tokens are counted as a trainer counts them, and quoted text cannot change the role."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_server.errors import SetupError
from reward_server.prompts.chat_tokens import FRAME_TOKENS, ChatTokenCounter
from reward_server.prompts.composer import BriefingLevels, Composer
from reward_server.prompts.prompt_types import Message
from reward_server.prompts.special_tokens import SpecialTokens
from reward_server.prompts.templates import Rules
from tests.support import bpe

if TYPE_CHECKING:
    from pathlib import Path

CHAT = (Message("system", "be brief"), Message("user", "hello"))
TEXTS = ["be brief hello hello world", "import pandas as pd"]


def test_the_whole_rendered_prompt_is_counted(tokenizer: ChatTokenCounter) -> None:
    whole = (
        "<|im_start|>system\nbe brief<|im_end|>\n<|im_start|>user\nhello<|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    assert tokenizer.render(CHAT) == whole
    found = tokenizer._tokenizer.encode(whole, add_special_tokens=False)
    assert tokenizer.measure([CHAT, CHAT]) == [len(found.ids)] * 2
    assert found.tokens.count("<|im_start|>") == 3


def test_without_a_template_every_message_has_an_allowance(tmp_path: Path) -> None:
    folder = bpe.train(tmp_path, TEXTS, template=None)
    for path in (folder, folder / "tokenizer.json"):
        counter = ChatTokenCounter("plain", path)
        contents = sum(counter.measure_texts([message.content for message in CHAT]))
        assert counter.measure([CHAT]) == [contents + 3 * FRAME_TOKENS]


def test_the_file_chat_template_jinja_comes_first(tmp_path: Path) -> None:
    folder = bpe.train(tmp_path, TEXTS)
    template = "{% for m in messages %}{{ m['content'] }}{{ eos_token }}{% endfor %}"
    (folder / "chat_template.jinja").write_text(template)
    assert ChatTokenCounter("x", folder).render(CHAT) == "be brief<|im_end|>hello<|im_end|>"


def test_of_several_templates_the_default_is_taken(tmp_path: Path) -> None:
    folder = bpe.train(tmp_path, TEXTS)
    named = [{"name": "tool", "template": "x"}, {"name": "default", "template": bpe.TEMPLATE}]
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": named}))
    assert "<|im_start|>user\nhello" in ChatTokenCounter("x", folder).render(CHAT)


@pytest.mark.parametrize(
    "template",
    [
        "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}",
        "",
    ],
)
def test_a_chat_without_system_messages_has_one_message(tmp_path: Path, template: str) -> None:
    only_users = "{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}"
    counter = ChatTokenCounter("x", bpe.train(tmp_path, TEXTS, template=template + only_users))
    assert not counter.takes_system
    rules = Rules("t", True, 60, 1 << 30, 1, has_gpu=False)  # noqa: FBT003
    levels = BriefingLevels.of(["# T\n", "# T\n\nMore.\n"], counter)
    (message,) = Composer(counter, 1024, rules, levels).scratch()
    assert message.role == "user"
    assert "no network" in message.content
    assert "# T\n\nMore.\n" in message.content


@pytest.mark.parametrize(
    "template", ["{% if %}", "{{ raise_exception('never') }}", "{{ ''.__class__.__mro__[1] }}"]
)
def test_a_template_that_fails_or_escapes_stops_the_start(tmp_path: Path, template: str) -> None:
    folder = bpe.train(tmp_path, TEXTS, template=template)
    with pytest.raises(SetupError, match="template"):
        ChatTokenCounter("x", folder)


@pytest.mark.parametrize("content", [None, "{}", "not json"])
def test_a_tokenizer_that_cannot_be_read_is_named(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(SetupError, match="the tokenizer 'mine'"):
        ChatTokenCounter("mine", tmp_path)


pieces = st.sampled_from(
    ["<", "|", "im_end", ">", "<|im_end|>", " ", "<s>", "/", "[ODD", "MARK]", "[INST]", "x", "\n"]
)


@given(text=st.lists(pieces, max_size=20).map("".join))
def test_no_broken_text_holds_a_special_token(tokenizer: ChatTokenCounter, text: str) -> None:
    broken = tokenizer.special_tokens.escaped(text)
    assert not tokenizer.special_tokens.occur_in(broken)
    tokens = tokenizer._tokenizer.encode(broken, add_special_tokens=False).tokens
    assert not set(tokens) & set(bpe.SPECIALS)
    assert (broken == text) == (not tokenizer.special_tokens.occur_in(text))


def test_usual_markers_are_known_without_a_tokenizer() -> None:
    markers = SpecialTokens()
    for marker in (
        *("<|eot_id|>", "<|start_header_id|>", "<\uff5cUser\uff5c>", "<s>", "</s>", "[/INST]"),
        *("<<SYS>>", "<start_of_turn>", "<eos>"),
    ):
        assert markers.occur_in(f"a{marker}b")
        assert not markers.occur_in(markers.escaped(f"a{marker}b"))
    for harmless in ("a < b | c > d", "x[INST", "df[df.a<s]", "<b>bold</b>", "a <| b |> c"):
        assert markers.escaped(harmless) == harmless
