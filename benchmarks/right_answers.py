"""The tokens that right answers cost: naming the labelled lines, against writing the program.

A small model writes on until its limit where it should copy a program, so what it spends on
`rewrite` says little about a model that answers well. Here the answers are made from the
corpus's labels and counted by the endpoint's own tokenizer (vLLM's `/tokenize`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx

from reward_server.instrument.lm.prompts import without_comments
from reward_server.model import Milestone

if TYPE_CHECKING:
    from collections.abc import Iterable


def right_ratio(url: str, model: str, programs: Iterable[Any]) -> float | None:
    """Return tokens of naming the places over tokens of the program with prints, or none.

    None is the answer of an endpoint that does not count tokens.
    """
    with httpx.Client(timeout=60) as client:
        root = url.removesuffix("/").removesuffix("/v1")

        def count(text: str) -> int:
            body = {"model": model, "prompt": text, "add_special_tokens": False}
            answer = client.post(f"{root}/tokenize", json=body).raise_for_status()
            return int(answer.json()["count"]) + 1  # the token that ends an answer

        try:
            pairs = [(count(_named(one)), count(_written(one))) for one in programs]
        except httpx.HTTPStatusError:
            return None
    named, written = map(sum, zip(*pairs, strict=True))
    print(
        f"tokens of right answers to {len(pairs)} programs, insert / rewrite: "
        f"{named} / {written} = {named / written:.3f}"
    )
    return named / written


def _first_lines(program: Any) -> dict[Milestone, int]:  # noqa: ANN401 - the corpus is no package
    return {milestone: min(places)[0] for milestone, places in program.acceptable.items()}


def _named(program: Any) -> str:  # noqa: ANN401
    first = _first_lines(program)
    return json.dumps({str(int(m)): [first[m]] if m in first else [] for m in Milestone})


def _written(program: Any) -> str:  # noqa: ANN401
    lines = (without_comments(program.code) or program.code).split("\n")
    for milestone, line in sorted(_first_lines(program).items(), key=lambda item: -item[1]):
        indent = lines[line - 1][: len(lines[line - 1]) - len(lines[line - 1].lstrip())]
        lines.insert(line, f'{indent}print("{milestone.label}")')
    text = "\n".join(lines)
    return f"```python\n{text}\n```"
