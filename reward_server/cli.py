"""The command line: serve, check, score, tasks, solutions."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.logging import RichHandler

from reward_server.errors import SetupError
from reward_server.settings import load_settings

app = typer.Typer(
    help="Scores generated machine-learning programs in isolation.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
console = Console(stderr=True)
DataDir = Annotated[Path | None, typer.Option(help="Where data and the database live.")]
