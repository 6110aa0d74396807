"""One server for each kind of sandbox, side by side, so that they can be measured in turns."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from pipeline import warm_up
from server import Server, serving, temporary_folder

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from pathlib import Path


def add_kinds(parser: argparse.ArgumentParser) -> None:
    """Let the caller choose the kinds, the rounds and a file for the numbers."""
    parser.add_argument("--kinds", default="bubblewrap", help="kinds of sandbox, by comma")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", metavar="FILE", help="write the numbers here as well")


@contextmanager
def servers_of(kinds: str) -> Iterator[tuple[Path, dict[str, Server]]]:
    """Serve with every kind at once, warmed up, and give a folder for programs beside them."""
    with temporary_folder() as parent, ExitStack() as stack:
        servers = {}
        for kind in kinds.split(","):
            extra = {"REWARD_SERVER_SANDBOX__KIND": kind}
            servers[kind] = stack.enter_context(serving(parent / kind, extra=extra))
            warm_up(servers[kind].port)
        programs = parent / "programs"
        programs.mkdir(mode=0o755)
        yield programs, servers
