"""The special tokens at the end of a text, which some trainers decode with the rest.

A block of code whose last fence is followed by one would have no end, and no program in it parse.
"""

from __future__ import annotations

import re

_SPECIAL_TOKEN = re.compile(
    r"(?:<[|\uff5c][^|<>\uff5c]{1,40}[|\uff5c]>|</?s>|<eos>|<pad>|<end_of_turn>)\s{0,8}\Z"
)
_LONGEST_TOKEN = 52
_MOST_TOKENS = 16


def without_special_tokens(text: str) -> str:
    """Return what a policy wrote before its end of turn."""
    end = len(text)
    for _ in range(_MOST_TOKENS):  # a policy may have written nothing else, megabytes of it
        found = _SPECIAL_TOKEN.search(text, max(0, end - _LONGEST_TOKEN), end)
        if found is None:
            break
        end = found.start()
    return text[:end]
