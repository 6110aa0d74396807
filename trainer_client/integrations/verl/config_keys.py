"""Which keys the installed veRL knows and reads, and which kinds of values they take.

A key is known if it stands in veRL's composed configuration, or is a field of the dataclass that
a node there is read into (`_target_`), or lies below a node that is open to anything. Hydra alone
takes every key that is written with a `+`, and veRL's dataclasses check no types. Keys that veRL
accepts and ignores are listed in `ignored_keys.toml`.
"""

from __future__ import annotations

import difflib
import importlib
import tomllib
import types
import typing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainer_client.integrations.verl.findings import ConfigFinding, at, flatten

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trainer_client.integrations.verl.findings import Tree

# veRL passes on what lies below these, or it is ours and RunSettings reads it.
OPEN = (
    "reward_server",
    "data.reward_server",
    "trainer.v1.sampler.sampler_kwargs",
    "ray_kwargs.ray_init",
    "actor_rollout_ref.actor.optim.override_optimizer_config",
    "critic.optim.override_optimizer_config",
    "reward.custom_reward_function.reward_kwargs",
    "trainer.wandb_proxy",
)
# The default alone does not say which types these take.
_WIDER: dict[str, Any] = {
    "trainer.v1.colocate_async.num_warmup_batches": int | float,
    "trainer.v1.sampler.max_off_policy_threshold": int | None,
    "trainer.logger": list[str] | str,
    "data.train_files": list[str] | str,
    "data.val_files": list[str] | str,
}

_KINDS: dict[Any, tuple[type, ...]] = {
    bool: (bool,),
    int: (int,),
    float: (int, float),
    str: (str,),
    list: (list, tuple),
    tuple: (list, tuple),
    dict: (dict,),
}


@dataclass(frozen=True, slots=True)
class IgnoredKey:
    """A key that veRL accepts and never reads, with everything below it.

    It may stand beside the keys `same_as` with the same value. With `only`, veRL ignores it where
    that key has that value.
    """

    key: str
    instead: str
    same_as: tuple[str, ...] = ()
    only: tuple[str, str] | None = None

    def covers(self, key: str) -> bool:
        """Tell whether this is about a key."""
        return key == self.key or key.startswith(f"{self.key}.")

    def is_harmless(self, value: object, requested: Mapping[str, Any]) -> bool:
        """Tell whether the run has the requested effect all the same."""
        if self.only is not None and requested.get(self.only[0]) != self.only[1]:
            return True
        same = [requested.get(key) == value for key in self.same_as]
        return bool(same) and all(same)


def _read_ignored(file: Path) -> Iterator[IgnoredKey]:
    listed = tomllib.loads(file.read_text())
    for key, instead in listed["ignored"].items():
        yield IgnoredKey(key, instead)
    for one in listed["ignored_unless_same"]:
        yield IgnoredKey(one["key"], one["instead"], same_as=tuple(one["same_as"]))
    for group in listed["ignored_when"]:
        for key in group["keys"]:
            yield IgnoredKey(key, group["instead"], only=(group["key"], group["value"]))


IGNORED_KEYS = tuple(_read_ignored(Path(__file__).with_name("ignored_keys.toml")))


def find_ignored(requested: Mapping[str, Any]) -> Iterator[ConfigFinding]:
    """Yield the keys of a run that would be ignored; null requests nothing, so nothing is lost."""
    for key, value in requested.items():
        for ignored in IGNORED_KEYS:
            is_lost = value is not None and not ignored.is_harmless(value, requested)
            if ignored.covers(key) and is_lost:
                yield ConfigFinding(key, f"veRL takes this and ignores it; {ignored.instead}")


def find_unknown(base: Tree, requested: Mapping[str, Any]) -> Iterator[ConfigFinding]:
    """Yield the keys that veRL does not know, with the nearest that it does."""
    known = list(flatten(base))
    for key, value in requested.items():
        if not is_known(base, key):
            yield ConfigFinding(key, f"veRL has no such key{_suggest(key, known)}")
        elif isinstance(at(base, key), dict) and at(base, key) and not isinstance(value, dict):
            yield ConfigFinding(key, f"this is a group of keys and cannot be {value!r}")


def is_known(base: Tree, key: str) -> bool:
    """Tell whether veRL, or what it passes its configuration on to, may read this key."""
    if any(key == node or key.startswith(f"{node}.") for node in OPEN):
        return True
    node: Any = base
    for part in key.split("."):
        if not isinstance(node, dict):
            return False
        if part not in node:
            return node == {} or part in _fields(node)
        node = node[part]
    return True


def find_misfits(base: Tree, resolved: Mapping[str, Any]) -> Iterator[ConfigFinding]:
    """Yield the keys whose resolved values have the wrong type."""
    for key, value in resolved.items():
        expected = _expected(base, key)
        if expected is not None and not fits(value, expected):
            yield ConfigFinding(key, f"{value!r} is not {_name(expected)}")


def fits(value: object, expected: Any) -> bool:  # noqa: ANN401 - an annotation
    """Tell whether a value has the annotated type. A type that is not known here fits any value."""
    origin = typing.get_origin(expected)
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, one) for one in typing.get_args(expected))
    kinds = _KINDS.get(origin or expected)
    if kinds is None:
        return expected not in (None, type(None)) or value is None
    return isinstance(value, kinds) and (expected is bool or not isinstance(value, bool))


def _expected(base: Tree, key: str) -> Any:  # noqa: ANN401 - an annotation
    if key in _WIDER:
        return _WIDER[key]
    above, _, name = key.rpartition(".")
    node = at(base, above) if above else base
    if not isinstance(node, dict):
        return None
    hint = _fields(node).get(name)
    if hint is not None:
        return hint
    value = node.get(name)
    is_plain = isinstance(value, (bool, int, float, str, list)) and "${" not in str(value)
    return type(value) if is_plain and value != "???" else None


def _fields(node: Tree) -> dict[str, Any]:
    """Return the fields of the dataclass that a node is read into, with their annotations."""
    module, _, name = str(node.get("_target_", "")).rpartition(".")
    if not module:
        return {}
    kind = getattr(importlib.import_module(module), name)
    hints = typing.get_type_hints(kind)
    return {field: hints.get(field) for field in getattr(kind, "__dataclass_fields__", {})}


def _suggest(key: str, known: list[str]) -> str:
    same = [one for one in known if one.rpartition(".")[2] == key.rpartition(".")[2]]
    near = difflib.get_close_matches(key, same or known, n=1, cutoff=0.3 if same else 0.6)
    return f"; the nearest is {near[0]}" if near else ""


def _name(expected: Any) -> str:  # noqa: ANN401 - an annotation
    if typing.get_origin(expected) in (typing.Union, types.UnionType):
        return " or ".join(_name(one) for one in typing.get_args(expected))
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
    if expected in (None, type(None)):
        return "null"
    return words.get(expected, "a list" if expected is not dict else "a group")
