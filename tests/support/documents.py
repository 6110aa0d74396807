"""Finds names in Markdown documents that do not exist in the source tree.

Objects are looked up in the source, not imported: modules for trainers need the trainers.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, get_args

import typer
from pydantic import BaseModel
from typer.core import TyperGroup

from reward_server.cli.app import app
from reward_server.settings import PREFIX, Settings
from trainer_client import run as trainer_run
from trainer_client.settings import RunSettings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FOLDERS = r"reward_server|trainer_client|tests|docs|benchmarks|sandbox_images|migrations|\.ci"
_PATH = re.compile(rf"(?<![\w./-])((?:{_FOLDERS})/[\w./*<>{{}},-]*)(?:::(\w+))?")
_METRIC = re.compile(r"reward_server/(\*|\w+/(mean|min|max|sum)\b.*)")  # what trainers log
_DOTTED = re.compile(r"(?<![\w./-])((?:reward_server|trainer_client)(?:\.[A-Za-z_]\w*)+)(:[\w.]+)?")
_LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]*))?\)|<img [^>]*src=\"(?!\w+:)([^\"]+)()\"")
_SETTING = re.compile(rf"\b{PREFIX}[A-Z0-9_]*")
_FENCE = re.compile(r"(?ms)^ *```.*?^ *```")
_SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_MAKE = re.compile(r"(?:^|[|;&$] ?)\s*make((?: +(?:--jobs \d+|[\w-]+=?\S*))+)")
_COMMAND = re.compile(r"(?<![\w=.-])(?:[\w./-]*/)?reward-server +(\S.*)")


@dataclass(frozen=True, slots=True)
class Document:
    """A Markdown text, where it is, and the source tree it is about."""

    path: Path
    text: str
    root: Path

    def code(self) -> list[str]:
        """Return code spans and the lines of code blocks."""
        blocks = [line for block in _FENCE.findall(self.text) for line in block.splitlines()[1:-1]]
        spans = _SPAN.findall(_FENCE.sub("", self.text))
        return blocks + [" ".join(span.split()) for span in spans]


def find_stale(document: Document) -> list[str]:
    """Return a line for each name that does not exist, in order of its kind."""
    checks = (_paths, _links, _objects, _targets, _commands, _settings)
    return [line for check in checks for line in dict.fromkeys(check(document))]


def _paths(document: Document) -> Iterator[str]:
    without_links = _LINK.sub("]", document.text)
    for match in _PATH.finditer(without_links):
        path, test = match[1].rstrip(".,"), match[2]
        if _METRIC.match(path):
            continue
        pattern = re.sub(r"<[^>]*>|\{[^}]*\}", "*", path).rstrip("/")
        found = list(document.root.glob(pattern))
        if not found:
            yield f"{path}: no such file"
        elif test and f"def {test}(" not in found[0].read_text(encoding="utf-8"):
            yield f"{path}::{test}: no such test"


def _links(document: Document) -> Iterator[str]:
    for match in _LINK.finditer(_FENCE.sub("", document.text)):
        path, anchor = match[1] or match[3] or "", match[2]
        target = document.path.parent / path if path else document.path
        if not target.exists():
            yield f"{path}: no such file"
        elif anchor:
            text = target.read_text(encoding="utf-8") if path else document.text
            if anchor not in _anchors(text):
                yield f"{path}#{anchor}: no such heading"


def _anchors(text: str) -> set[str]:
    """Return the anchors that GitHub makes of the headings."""
    seen: Counter[str] = Counter()
    found = set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text))
    for heading in re.findall(r"(?m)^#+ +(.+?) *#*$", _FENCE.sub("", text)):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found


def _objects(document: Document) -> Iterator[str]:
    for match in _DOTTED.finditer(document.text):
        dotted = match[0].replace(":", ".").rstrip(".")
        first, *rest = dotted.split(".")
        # The section `reward_server` of a trainer's configuration.
        is_run_setting = first == "reward_server" and rest[0] in RunSettings.model_fields
        if not is_run_setting and not _object_exists(document.root, dotted):
            yield f"{match[0]}: no such object"


def _object_exists(root: Path, dotted: str) -> bool:
    parts = dotted.split(".")
    for split in range(len(parts), 0, -1):
        file = _module_file(root, parts[:split])
        if file is not None:
            return _defines(root, file, parts[split:])
    return False


def _module_file(root: Path, parts: list[str]) -> Path | None:
    path = root.joinpath(*parts)
    candidates = (path.with_name(f"{path.name}.py"), path / "__init__.py")
    if path.is_dir() and not candidates[1].exists():
        return path
    return next((file for file in candidates if file.is_file()), None)


def _defines(root: Path, file: Path, names: list[str]) -> bool:
    return not names or (file.is_file() and _binds(root, file, _parse(file).body, names))


def _binds(root: Path, file: Path, body: list[ast.stmt], names: list[str]) -> bool:
    """Tell whether a body defines a name, and the class of that name the next one."""
    node, rest = _find(body, names[0]), names[1:]
    if isinstance(node, ast.ImportFrom):
        origin = next(one.name for one in node.names if names[0] in {one.name, one.asname})
        return _object_exists(root, ".".join([str(node.module), origin, *rest]))
    if isinstance(node, ast.ClassDef) and rest:
        bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
        return _binds(root, file, node.body, rest) or any(
            _defines(root, file, [base, *rest]) for base in bases
        )
    return node is not None


@cache
def _parse(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def _find(body: list[ast.stmt], wanted: str) -> ast.stmt | None:
    """Return the statement of a module or class that binds the name."""
    for node in body:
        if isinstance(node, ast.If):
            nested = _find(node.body, wanted)
            if nested is not None:
                return nested
        if wanted in _bound_names(node):
            return node
    return None


def _bound_names(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return {node.name}
    if isinstance(node, ast.ImportFrom):
        return {alias.asname or alias.name for alias in node.names}
    if isinstance(node, ast.Assign | ast.AnnAssign):
        names = [part for part in ast.walk(node) if isinstance(part, ast.Name)]
        return {name.id for name in names if isinstance(name.ctx, ast.Store)}
    return set()


def _targets(document: Document) -> Iterator[str]:
    makefile = (document.root / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"(?m)^([a-z][a-z-]*):", makefile))
    variables = set(re.findall(r"\$\(([A-Z_]+)\)", makefile))
    for line in document.code():
        for words in _MAKE.findall(line.partition(" #")[0]):
            for number, word in enumerate(re.split(r" {2,}", words.strip())[0].split()):
                name, equals, _ = word.partition("=")
                if equals and name not in variables:
                    yield f"make {word}: no such variable"
                elif not equals and number == 0 and name not in targets:
                    yield f"make {word}: no such target"


def _commands(document: Document) -> Iterator[str]:
    root = typer.main.get_command(app)
    for line in document.code():
        for piece in re.split(r" {3,}|&&", line.partition(" #")[0]):
            if match := _COMMAND.search(piece):
                yield from _check_command(root, match[1])


def _check_command(root: object, text: str) -> Iterator[str]:
    """Check one command line; `a | b` means either of two commands of a group."""
    group: object = root
    for number, part in enumerate(text.split("|")):
        command = root if number == 0 else group
        words = part.partition(" -- ")[0].replace("[", " ").replace("]", " ").split()
        if words and words[0] == "reward-server":
            command, words = root, words[1:]
        elif number and (not isinstance(group, TyperGroup) or group is root):
            continue  # another program reads the output
        while isinstance(command, TyperGroup) and words and re.fullmatch("[a-z][a-z-]*", words[0]):
            group = command
            if words[0] not in command.commands:
                yield f"reward-server {text}: no such command {words[0]}"
                return
            command = command.commands[words.pop(0)]
        yield from (
            f"reward-server {text}: no such option {option}"
            for option in re.findall(r"(?:^| )(--[a-z][a-z-]*)", " ".join(words))
            if option not in _options(command)
        )


def _options(command: object) -> set[str]:
    params = getattr(command, "params", [])
    return {"--help"}.union(*({*param.opts, *param.secondary_opts} for param in params))


def _settings(document: Document) -> Iterator[str]:
    client = {trainer_run.API_KEY, trainer_run.URL, trainer_run.RUN_ID}
    for name in _SETTING.findall(document.text):
        parts = name.removeprefix(PREFIX).rstrip("_").lower().split("__")
        if name not in client and parts != [""] and not _is_setting([Settings], parts):
            yield f"{name}: no such setting"


def _is_setting(models: list[type[BaseModel]], parts: list[str]) -> bool:
    for part in parts:
        fields = [model.model_fields[part] for model in models if part in model.model_fields]
        if not fields:
            return False
        models = [model for field in fields for model in _models_of(field.annotation)]
    return True


def _models_of(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_of(part)
