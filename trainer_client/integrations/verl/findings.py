"""Findings about a configuration, and access to its nested keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Tree = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ConfigFinding:
    """A sentence about a key. An error prevents the start of the run, a hint does not."""

    key: str
    text: str
    severity: Literal["error", "hint"] = "error"

    def __str__(self) -> str:
        return f"{self.key}: {self.text}" if self.key else self.text


def at(tree: Tree, key: str, default: object = None) -> Any:  # noqa: ANN401 - it may be anything
    """Return the value at `a.b.c` in nested dictionaries."""
    node: Any = tree
    for part in key.split("."):
        if not isinstance(node, dict) or part not in node:
            return default
        node = node[part]
    return node


def flatten(tree: Tree, below: str = "") -> dict[str, Any]:
    """Flatten nested dictionaries to dotted keys. An empty dictionary is a value."""
    found: dict[str, Any] = {}
    for name, value in tree.items():
        key = f"{below}.{name}" if below else str(name)
        if isinstance(value, dict) and value:
            found |= flatten(value, key)
        else:
            found[key] = value
    return found
