"""Special tokens in untrusted text, such as `<|im_end|>` in what a program printed.

A trainer's tokenizer reads such a text as the real token, so a program could end its quotation
and speak in another role. In prose and output a space after the first character escapes the
token. A program that holds one is not shown at all, because code is shown unchanged or not.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_BEGINNINGS = (
    "<|",
    "<\uff5c",
    "<s>",
    "</s>",
    "<bos",
    "<eos",
    "<pad",
    "<unk",
    "<start_of",
    "<end_of",
)
_USUAL = (
    r"<\|[^\s|<>]{1,64}\|>",
    r"<\uff5c[^\s\uff5c<>]{1,64}\uff5c>",
    r"</?s>",
    r"<(?:bos|eos|pad|unk|start_of_turn|end_of_turn)>",
    r"\[/?INST\]",
    r"<</?SYS>>",
)


class SpecialTokens:
    """The special tokens of common chat templates, and those of one tokenizer."""

    def __init__(self, own: Iterable[str] = ()) -> None:
        exact = sorted({token for token in own if len(token) > 1}, key=len, reverse=True)
        self._any = re.compile("|".join([*map(re.escape, exact), *_USUAL]))
        # Most texts have none, and a search for plain words is a hundred times as fast.
        words = dict.fromkeys([*_BEGINNINGS, "[INST]", "[/INST]", "<<SYS>>", "<</SYS>>", *exact])
        self._words = [word for word in words if word == "<|" or not word.startswith("<|")]

    def occur_in(self, text: str) -> bool:
        """Tell whether a text holds a special token."""
        return any(word in text for word in self._words) and bool(self._any.search(text))

    def escaped(self, text: str) -> str:
        """Return a text in which every special token is escaped."""
        if not any(word in text for word in self._words):
            return text
        return self._any.sub(lambda match: f"{match[0][0]} {match[0][1:]}", text)
