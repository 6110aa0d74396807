"""Composes and checks a run's configuration with the installed veRL; nothing is started.

The requested values become overrides of `python -m verl.trainer.main_ppo`, and Hydra composes them
here as it will there. The check loads no model and downloads nothing: veRL's own check of the
critic would read the model's files, so it gets the critic without its model.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import warnings
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException
from transformers import AutoTokenizer
from verl.trainer.ppo.utils import need_critic, need_reference_policy
from verl.utils.config import omega_conf_to_dataclass, validate_config

from trainer_client.integrations.verl.config_keys import find_ignored, find_misfits, find_unknown
from trainer_client.integrations.verl.findings import ConfigFinding, at
from trainer_client.settings import NODE, RunSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from trainer_client.integrations.verl.findings import Tree

_ROOT = "verl.trainer.config"
_NAME = "ppo_trainer"
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
_WORDS = ("null", "true", "false", "nan", "inf")
_DATACLASSES = ("actor_rollout_ref.rollout", "algorithm")


@dataclass(frozen=True, slots=True)
class ComposedConfig:
    """A run's resolved configuration, its overrides for veRL, and the findings about it."""

    tree: Tree
    overrides: tuple[str, ...]
    findings: tuple[ConfigFinding, ...]


def read_preset(file: Path) -> Tree:
    """Read a preset file. A duplicate key is an error.

    Raises:
        ValueError: it is not a preset.
    """
    try:
        return _plain(OmegaConf.load(file), resolve=False)
    except (OSError, yaml.YAMLError, OmegaConfBaseException, UnicodeDecodeError) as error:
        message = f"{file} cannot be read as a preset: {error}"
        raise ValueError(message) from None


def read_reasons(file: Path) -> dict[str, str]:
    """Return the comments of a preset's lines, by key."""
    text = file.read_text()
    comments = [line.partition(" # ")[2].strip() for line in text.splitlines()]
    found = _lines(yaml.compose(text), "")
    return {key: comments[line] for key, line in found.items() if comments[line]}


def read_overrides(words: list[str]) -> Tree:
    """Parse `a.b=1` overrides into nested values, as in a preset.

    Raises:
        ValueError: one is not an override.
    """
    plain = [word.lstrip("+") for word in words]
    for word in plain:
        if "=" not in word or word.startswith(("~", "=")):
            message = f"{word!r} is not KEY=VALUE"
            raise ValueError(message)
    try:
        return _plain(OmegaConf.from_dotlist(plain), resolve=False)
    except OmegaConfBaseException as error:
        message = f"an override cannot be read: {error}"
        raise ValueError(message) from None


def compose_run(requested: Mapping[str, Any]) -> ComposedConfig:
    """Compose veRL's configuration with the requested values and check it."""
    base = known_tree()
    unknown = list(find_unknown(base, requested))
    findings = [*unknown, *find_ignored(requested)]
    wrong = {finding.key for finding in unknown}
    known = {key: value for key, value in requested.items() if key not in wrong}
    overrides = [
        format_override(key, value, is_new=not _contains(base, key)) for key, value in known.items()
    ]
    try:
        config = _compose(overrides)
        tree = _plain(config, resolve=True)
    except Exception as error:  # noqa: BLE001 - Hydra's and OmegaConf's share no class
        findings.append(ConfigFinding("", f"the configuration cannot be composed: {error}"))
        return ComposedConfig({}, tuple(overrides), tuple(findings))
    resolved = {key: at(tree, key) for key in known}
    misfits = list(find_misfits(base, resolved))
    findings += misfits
    findings += _read_settings(tree)
    if not misfits:  # otherwise veRL would repeat the same finding
        findings += _validate(config)
    return ComposedConfig(tree, tuple(overrides), tuple(findings))


@cache
def known_tree() -> Tree:
    """Return veRL's own configuration, without overrides."""
    return _plain(_compose([]), resolve=False)


def format_override(key: str, value: object, *, is_new: bool) -> str:
    """Format an override for Hydra's command line."""
    return f"{'+' if is_new else ''}{key}={_format_value(value)}"


def count_tokens(model: str, trust: bool, options: Tree) -> Callable[[list[Tree]], int]:  # noqa: FBT001
    """Return a function that counts the tokens of chat messages for the model.

    Raises:
        ValueError: the model's tokenizer cannot be loaded.
    """
    try:
        folder = Path(model).expanduser()
        name = str(folder) if folder.exists() else model
        tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=trust)
    except Exception as error:  # noqa: BLE001 - the hub's, the network's and the file's errors
        message = f"the tokenizer of {model} cannot be loaded: {str(error).splitlines()[0]}"
        raise ValueError(message) from None

    def count(messages: list[Tree]) -> int:
        text = tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, tokenize=False, **options
        )
        return len(tokenizer(text, add_special_tokens=False)["input_ids"])

    return count


def _compose(overrides: list[str]) -> Any:  # noqa: ANN401 - OmegaConf's
    with initialize_config_module(_ROOT, version_base=None):
        return compose(_NAME, overrides=overrides)


def _plain(config: object, *, resolve: bool) -> Tree:
    content: Tree = OmegaConf.to_container(config, resolve=resolve)
    return content


def _lines(node: Any, key: str) -> dict[str, int]:  # noqa: ANN401 - PyYAML's
    if not isinstance(node, yaml.MappingNode):
        return {key: node.start_mark.line}
    found: dict[str, int] = {}
    for name, value in node.value:
        found |= _lines(value, f"{key}.{name.value}" if key else name.value)
    return found


def _contains(base: Tree, key: str) -> bool:
    missing = object()
    return at(base, key, missing) is not missing


def _format_value(value: object) -> str:
    if isinstance(value, dict):
        inside = (f"{_format_value(str(name))}:{_format_value(one)}" for name, one in value.items())
        return f"{{{','.join(inside)}}}"
    if isinstance(value, (list, tuple)):
        return f"[{','.join(_format_value(one) for one in value)}]"
    if isinstance(value, str) and (_PLAIN.fullmatch(value) is None or value in _WORDS):
        doubled = re.sub(r'(\\+)("|$)', r"\1\1\2", value)  # Hydra treats only these as escapes
        return '"' + doubled.replace('"', '\\"') + '"'
    if isinstance(value, str):
        return value
    return json.dumps(value)


def _read_settings(tree: Tree) -> Iterator[ConfigFinding]:
    try:
        RunSettings.read(tree.get(NODE))
    except ValueError as error:
        for text in str(error).split("; "):
            yield ConfigFinding("", text)
    for copy in (f"data.{NODE}", f"trainer.v1.sampler.sampler_kwargs.{NODE}"):
        resolved = at(tree, copy)
        if resolved is not None and resolved != tree.get(NODE):
            yield ConfigFinding(copy, f"write ${{{NODE}}}: it must say the same as {NODE}")


def _validate(config: Any) -> Iterator[ConfigFinding]:  # noqa: ANN401 - OmegaConf's
    """Run veRL's own checks: some dataclasses one by one, then the whole configuration."""

    def check() -> None:
        critic, reference = need_critic(config), need_reference_policy(config)
        with open_dict(config):
            config.critic.model = None
        validate_config(config, use_reference_policy=reference, use_critic=critic)

    for node in _DATACLASSES:
        text = _try(partial(omega_conf_to_dataclass, OmegaConf.select(config, node)))
        if text:
            yield ConfigFinding(node, text)
    text = _try(check)
    if text:
        yield ConfigFinding("", f"veRL refuses the configuration: {text}")


def _try(check: Callable[[], object]) -> str:
    """Return the error of a check, without what veRL prints."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            check()
        except Exception as error:  # noqa: BLE001 - veRL raises assertions and other errors
            return str(error) or type(error).__name__
    return ""
