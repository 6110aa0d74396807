"""What the commands share: consoles, options, the client of a server, and how answers look."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from trainer_client import RewardClient

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

DataDir = Annotated[Path | None, typer.Option(help="Directory of the data and the database.")]
Url = Annotated[str, typer.Option(help="URL of the server.")]
Key = Annotated[str | None, typer.Option(envvar="REWARD_SERVER_API_KEY", help="API key.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DEFAULT_URL = "http://127.0.0.1:8000"
_OUTAGE_SECONDS = 1.0  # an interactive command reports an unreachable server soon

out = Console()
err = Console(stderr=True)


def connect(url: str, api_key: str | None) -> RewardClient:
    """Return a client for one command."""
    return RewardClient(url, api_key, outage_seconds=_OUTAGE_SECONDS)


class _Dash:
    def __format__(self, form: str) -> str:
        return "-"


def show_table(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str]) -> None:
    """Print rows as a table; a column is a heading and a format of the row's fields."""
    table = Table(*columns)
    for row in rows:
        shown = {name: _Dash() if value is None else value for name, value in row.items()}
        table.add_row(*(escape(form.format_map(shown)) for form in columns.values()))
    out.print(table)
