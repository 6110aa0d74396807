"""Removes special tokens at the end of a text; some trainers decode them with the completion.

A special token right after the closing fence of a code block would leave the block open.
"""

from __future__ import annotations

import re

_SPECIAL_TOKEN = re.compile(
    r"(?:<[|\uff5c][^|<>\uff5c]{1,40}[|\uff5c]>|</?s>|<eos>|<pad>|<end_of_turn>)\s{0,8}\Z"
)
_LONGEST_TOKEN = 52
_MOST_TOKENS = 16


def without_special_tokens(text: str) -> str:
    """Return the text without the special tokens at its end."""
    end = len(text)
    for _ in range(_MOST_TOKENS):  # bounded: a policy may write megabytes of nothing else
        found = _SPECIAL_TOKEN.search(text, max(0, end - _LONGEST_TOKEN), end)
        if found is None:
            break
        end = found.start()
    return text[:end]
