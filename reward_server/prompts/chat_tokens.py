"""Counts the tokens a model will read: chat template, then tokenizer, as a trainer does.

A tokenizer is a folder in the layout of published models (`tokenizer.json`,
`tokenizer_config.json`, and the template there or in `chat_template.jinja`) or a
`tokenizer.json` alone. Templates run in jinja's sandbox. Without a template the contents are
counted, plus `FRAME_TOKENS` for each message and for the beginning of the answer.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any, NoReturn

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer

from reward_server.errors import SetupError
from reward_server.prompts.prompt_types import Message
from reward_server.prompts.special_tokens import SpecialTokens

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from jinja2 import Template

    from reward_server.prompts.prompt_types import Messages

FRAME_TOKENS = 16
_PROBE = (Message("system", "a"), Message("user", "b"))


class ChatTokenCounter:
    """Counts tokens as one model reads them.

    Raises:
        SetupError: when the tokenizer or its template cannot be read.
    """

    unit = "tokens"
    characters_each = 2.0
    most_characters_each = 8.0

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        folder = path if path.is_dir() else path.parent
        config = _read_config(folder / "tokenizer_config.json") if path.is_dir() else {}
        try:
            file = folder / "tokenizer.json" if path.is_dir() else path
            self._tokenizer: Tokenizer = Tokenizer.from_file(str(file))
        except Exception as error:  # noqa: BLE001 - the library raises nothing narrower
            message = f"the tokenizer {name!r} cannot be read from {path}: {error}"
            raise SetupError(message) from None
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._specials = {key: _content(config.get(key)) for key in config if _is_special(key)}
        self._template = _template(folder, config) if path.is_dir() else None
        self.takes_system = self._probe()
        added = self._tokenizer.get_added_tokens_decoder().values()
        self.special_tokens = SpecialTokens(
            [str(token.content) for token in added if token.special]
        )

    def measure(self, prompts: Sequence[Messages]) -> list[int]:
        """Return the tokens of whole prompts, up to where the answer begins."""
        if self._template is None:
            texts = [message.content for prompt in prompts for message in prompt]
            counts = iter(self.measure_texts(texts))
            return [
                sum(next(counts) + FRAME_TOKENS for _ in prompt) + FRAME_TOKENS
                for prompt in prompts
            ]
        return self.measure_texts([self.render(prompt) for prompt in prompts])

    def measure_texts(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text by itself."""
        found = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [len(encoding) for encoding in found]

    def render(self, prompt: Messages) -> str:
        """Return a prompt as the template renders it; without a template, its contents."""
        if self._template is None:
            return "\n".join(message.content for message in prompt)
        messages = [{"role": message.role, "content": message.content} for message in prompt]
        return self._template.render(
            messages=messages, add_generation_prompt=True, tools=None, **self._specials
        )

    def _probe(self) -> bool:
        """Tell whether the template supports system messages; it must support users' messages."""
        try:
            return "a" in self.render(_PROBE) and "b" in self.render(_PROBE)
        except TemplateError:
            pass
        try:
            self.render(_PROBE[1:])
        except (TemplateError, TypeError, ValueError) as error:
            message = f"the chat template of the tokenizer {self.name!r} fails: {error}"
            raise SetupError(message) from None
        return False


def _template(folder: Path, config: dict[str, Any]) -> Template | None:
    file = folder / "chat_template.jinja"
    source = file.read_text(encoding="utf-8") if file.is_file() else config.get("chat_template")
    if isinstance(source, list):
        named = {entry.get("name"): entry.get("template") for entry in source}
        source = named.get("default")
    if not source:
        return None
    # The template comes with a downloaded model, so it must not reach the server's objects.
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = lambda form: datetime.now().astimezone().strftime(form)
    environment.filters["tojson"] = _to_json
    try:
        return environment.from_string(str(source))
    except TemplateError as error:
        message = f"the chat template in {folder} cannot be read: {error}"
        raise SetupError(message) from None


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)


def _to_json(value: object, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _read_config(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        message = f"{path} is not JSON: {error}"
        raise SetupError(message) from None
    return config if isinstance(config, dict) else {}


def _is_special(key: str) -> bool:
    return key.endswith("_token") and not key.startswith("add_")


def _content(token: object) -> str | None:
    content = token.get("content") if isinstance(token, dict) else token
    return None if content is None else str(content)
