"""The `openapi` command: the contract as a document, without a server."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 -- typer reads the options' types
from typing import Annotated

import typer

from reward_server.api.app import create_app
from reward_server.api.openapi import never_opened, render


def openapi_command(
    output: Annotated[Path | None, typer.Option(help="A file to write it to.")] = None,
) -> None:
    """Print the OpenAPI document of the server."""
    text = render(create_app(never_opened).openapi())
    if output is None:
        typer.echo(text, nl=False)
    else:
        output.write_text(text)
