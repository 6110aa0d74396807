"""The `prompts` command: prints prompts as a trainer gets them."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.rule import Rule

from reward_server.cli.console import DEFAULT_URL, AsJson, Key, Url, out
from trainer_client import RewardClient


def prompts_command(  # noqa: PLR0913, PLR0917 - one option a field
    task: Annotated[str, typer.Option(help="The task to solve.")],
    run: Annotated[str, typer.Option(help="The run that parents come from.")] = "default",
    n: Annotated[int, typer.Option(help="How many prompts.")] = 1,
    improve: Annotated[
        float, typer.Option(help="Share of prompts that improve on a solution.")
    ] = 0.5,
    strategy: Annotated[
        str, typer.Option(help="How parents are chosen: previous_step, best, softmax or diverse.")
    ] = "previous_step",
    seed: Annotated[int | None, typer.Option(help="Seed, to draw the same prompts again.")] = None,
    characters: Annotated[int | None, typer.Option(help="Budget in characters.")] = None,
    url: Url = DEFAULT_URL,
    api_key: Key = None,
    as_json: AsJson = False,  # noqa: FBT002 - a flag
) -> None:
    """Print prompts of a task as a trainer gets them."""
    budget = None if characters is None else {"characters": characters}
    fields = {"run_id": run, "n": n, "improve_fraction": improve, "strategy": strategy}
    with RewardClient(url, api_key) as client:
        answer = client.prompts(task, deadline_seconds=None, **fields, seed=seed, budget=budget)
    if as_json:
        out.print_json(json.dumps(answer))
        return
    for prompt in answer["prompts"]:
        why = f" ({prompt['fallback']})" if prompt["fallback"] else ""
        parent = f" {prompt['parent_id']}" if prompt["parent_id"] else ""
        out.print(Rule(f"{prompt['kind']}{parent}{why}", characters="="))
        for message in prompt["messages"]:
            out.print(Rule(message["role"], characters="-"))
            out.print(message["content"], markup=False, highlight=False, soft_wrap=True)
