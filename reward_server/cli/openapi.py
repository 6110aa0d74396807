"""The `openapi` command: prints the OpenAPI document without starting a server."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 -- typer reads the options' types
from typing import Annotated

import typer

from reward_server.api.app import create_app
from reward_server.api.openapi import no_services, render


def openapi_command(
    output: Annotated[
        Path | None, typer.Option(help="Write to this file instead of stdout.")
    ] = None,
) -> None:
    """Print the OpenAPI document of the server."""
    text = render(create_app(no_services).openapi())
    if output is None:
        typer.echo(text, nl=False)
    else:
        output.write_text(text)
