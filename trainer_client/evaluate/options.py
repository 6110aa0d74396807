"""Parses the command line into a plan and options."""

from __future__ import annotations

import argparse
import math
import os
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar

import httpx

from trainer_client.client.options import DEFAULT_URL, check_url
from trainer_client.evaluate.plan import EvaluationOptions, EvaluationPlan, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_Part = TypeVar("_Part", EvaluationPlan, EvaluationOptions)
SERVER_KEY = "REWARD_SERVER_API_KEY"
ENDPOINT_KEY = "OPENAI_API_KEY"
_PROMPT_CHARACTERS = 4096
_PROMPT_TOKENS = 1024


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def read_options(words: Sequence[str]) -> tuple[EvaluationPlan, EvaluationOptions]:
    """Return the plan and the options.

    Raises:
        UsageError: an option is missing, unknown or makes no sense.
    """
    given = _parser().parse_args(words)
    if given.tokenizer is None and given.prompt_tokens is not None:
        message = "--prompt-tokens needs a --tokenizer that the server has"
        raise UsageError(message)
    if given.tokenizer is not None and given.prompt_characters is not None:
        message = "--tokenizer and --prompt-characters exclude each other"
        raise UsageError(message)
    if given.json is not None and not given.json.absolute().parent.is_dir():
        message = f"--json: there is no folder {given.json.parent}"
        raise UsageError(message)
    given.tasks = tuple(dict.fromkeys(given.tasks))
    if given.tokenizer is not None:
        given.prompt_tokens = given.prompt_tokens or _PROMPT_TOKENS
    else:
        given.prompt_characters = given.prompt_characters or _PROMPT_CHARACTERS
    given.server_key = os.environ.get(SERVER_KEY) or None
    given.endpoint_key = os.environ.get(given.endpoint_key_variable) or None
    return _pick(EvaluationPlan, given), _pick(EvaluationOptions, given)


def _pick(kind: type[_Part], given: argparse.Namespace) -> _Part:
    """Return the options that are fields of a class."""
    return kind(**{one.name: getattr(given, one.name) for one in fields(kind)})


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m trainer_client.evaluate",
        description="Generate and score samples of a model, and compare them with the paper.",
        epilog=f"Keys are read from the environment only: {SERVER_KEY} and {ENDPOINT_KEY}.",
        allow_abbrev=False,
    )
    _add_where(parser)
    _add_what(parser)
    _add_how(parser)
    return parser


def _add_where(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--server", type=_address, default=DEFAULT_URL, help="the reward server (%(default)s)")
    add("--endpoint", type=_address, required=True, help="the model's address, with its /v1")
    add(
        "--out", type=Path, required=True, help="the folder of the results; the same folder resumes"
    )
    add("--json", type=Path, help="write the report's JSON to this file, too")
    add(
        "--endpoint-key-variable",
        default=ENDPOINT_KEY,
        metavar="NAME",
        help="the variable with the endpoint's key (%(default)s)",
    )


def _add_what(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--model", type=_name, required=True, help="the model's name at the endpoint")
    add(
        "--task",
        type=_name,
        action="append",
        required=True,
        dest="tasks",
        metavar="TASK",
        help="may be given several times",
    )
    add("--samples", type=_whole(1), default=128, help="for each task and seed (%(default)s)")
    add("--seeds", type=_whole(1), default=3, help="how often to repeat all (%(default)s)")
    add("--temperature", type=_number(0, 2), default=0.7, help="(%(default)s)")
    add("--top-p", type=_number(0, 1, above=True), default=1.0, help="(%(default)s)")
    add("--max-tokens", type=_whole(1), default=1024, help="of a completion (%(default)s)")
    add("--prompt-tokens", type=_whole(1), help=f"of a prompt ({_PROMPT_TOKENS})")
    add("--tokenizer", type=_name, help="which counts them, by its name at the server")
    add("--prompt-characters", type=_whole(1), help=f"instead of tokens ({_PROMPT_CHARACTERS})")
    add(
        "--wall-seconds",
        type=_number(0, 86_400, above=True),
        help="a time limit for programs below the task's",
    )
    add("--no-improve", dest="improve", action="store_false", help="only samples from scratch")
    add("--run-id", type=_run_id, help="the run's name at the server (random)")


def _add_how(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    seconds = _number(0, math.inf, above=True)
    add("--concurrency", type=_whole(1), default=64, help="samples at once (%(default)s)")
    add(
        "--deadline-seconds",
        type=seconds,
        default=600.0,
        help="for generating one sample, with all retries (%(default)g)",
    )
    add(
        "--score-seconds",
        type=seconds,
        default=86_400.0,
        help="for scoring one sample, the queue included (%(default)g)",
    )
    add("--no-text", dest="keeps_text", action="store_false", help="do not keep the completions")


def _whole(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            message = f"{text!r} is not a whole number from {least} on"
            raise argparse.ArgumentTypeError(message)
        return int(text)

    return read


def _number(least: float, most: float, *, above: bool = False) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not least <= value <= most or (above and value == least):
            start = f"above {least:g}" if above else f"from {least:g}"
            end = "" if math.isinf(most) else f" up to {most:g}"
            message = f"{text!r} is not a number {start}{end}"
            raise argparse.ArgumentTypeError(message)
        return value

    return read


def _name(text: str) -> str:
    return _short("a name", 256, text)


def _run_id(text: str) -> str:
    return _short("the name of a run", 100, text)


def _short(what: str, most: int, text: str) -> str:
    if not 1 <= len(text) <= most:
        message = f"{what} has 1 to {most} characters"
        raise argparse.ArgumentTypeError(message)
    return text


def _address(text: str) -> str:
    try:
        has_password = bool(httpx.URL(check_url(text)).userinfo)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if has_password:
        message = "an address must not contain a password: keys are read from the environment"
        raise argparse.ArgumentTypeError(message)
    return text
