"""The `lm` commands: host the frozen language model that places markers.

vLLM hosts the model; this module chooses its flags. Frozen means the same weights for a whole
training run, so a model of the hub is pinned to a commit. The process becomes vLLM, so signals and
the exit code are vLLM's own. The instrumenter in `instrument/lm` talks to the model.

Flags are those of vLLM 0.11 to 0.32. Older ones log every request without
`--disable-log-requests`, and call `--structured-outputs-config` `--guided-decoding-…`.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from reward_server.errors import SetupError
from reward_server.settings import is_loopback

DEFAULT_MODEL = "Qwen/Qwen2.5-3B-Instruct"
DEFAULT_REVISION = "aa8e72537993ba99e69dfaafa59ed015b17504d1"
_KEY_VARIABLE = "REWARD_SERVER_INSTRUMENT__API_KEY"
_KEY_LETTERS = 16
_DEVICES = ("nvidia[0-9]*", "kfd", "dxg", "dri/render*", "accel*", "vfio/[0-9]*")
_OURS = frozenset({"--model", "--revision", "--host", "--port", "--uds", "--api-key"})
# Without it a guided completion may consist of white space up to the token limit.
_GUIDED = {"backend": "xgrammar", "disable_any_whitespace": True}

lm_app = typer.Typer(help="Host the frozen language model.", no_args_is_help=True)


@dataclass(frozen=True, slots=True)
class Hosting:
    """The model to host, and the address to serve it on."""

    model: str = DEFAULT_MODEL
    revision: str | None = None
    host: str = "127.0.0.1"
    port: int = 8001
    max_model_len: int = 16_384
    api_key: str | None = None
    further: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Build:
    """The installed vLLM, which is built for one kind of device."""

    version: str
    is_cpu: bool


@dataclass(frozen=True, slots=True)
class Machine:
    """The properties of the machine that flags depend on."""

    has_accelerator: bool
    has_bfloat16: bool


@dataclass(frozen=True, slots=True)
class Launch:
    """A command with its environment; the key is separate, because it is never printed."""

    command: tuple[str, ...]
    variables: dict[str, str]
    secrets: dict[str, str]

    def __str__(self) -> str:
        """Return the command as a line for a shell."""
        given = [f"{name}={shlex.quote(value)}" for name, value in self.variables.items()]
        return " ".join(
            [*given, *(f"{name}=***" for name in self.secrets), shlex.join(self.command)]
        )


@lm_app.command()
def serve(  # noqa: PLR0913, PLR0917 - one option a flag of vLLM
    model: Annotated[
        str, typer.Option(help="A model of the Hugging Face hub, or a folder.")
    ] = DEFAULT_MODEL,
    revision: Annotated[
        str | None,
        typer.Option(help="Commit of a hub model; required except for the default model."),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8001,
    max_model_len: Annotated[
        int, typer.Option(help="Maximum tokens of prompt and completion.")
    ] = 16_384,
    api_key: Annotated[str | None, typer.Option(envvar=_KEY_VARIABLE, help="API key.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the command and exit.")] = False,  # noqa: FBT002
    further: Annotated[
        list[str] | None, typer.Argument(help="Further flags for vLLM, after --.")
    ] = None,
) -> None:
    """Serve a frozen language model with vLLM until stopped."""
    hosting = Hosting(model, revision, host, port, max_model_len, api_key, tuple(further or ()))
    launch = plan(hosting, _installed(), _inspect_machine())
    if dry_run:
        typer.echo(str(launch))
        return
    typer.echo(str(launch), err=True)
    os.execve(  # noqa: S606 - becoming vLLM is the purpose
        launch.command[0], launch.command, {**os.environ, **launch.variables, **launch.secrets}
    )


def plan(hosting: Hosting, build: Build | None, machine: Machine) -> Launch:
    """Return the command that starts vLLM.

    Raises:
        SetupError: without a vLLM that fits the machine, without a commit for a model of the
            hub, or for an address that others can reach without a key.
    """
    _check_access(hosting)
    build = _check_build(build, machine)
    name, source, variables = _identify(hosting)
    flags = [
        *("--served-model-name", name),
        *("--host", hosting.host, "--port", str(hosting.port)),
        *("--max-model-len", str(hosting.max_model_len)),
        # Requests set all sampling parameters; a model's own defaults would disturb them.
        *("--generation-config", "vllm"),
        "--enable-prefix-caching",
        *("--structured-outputs-config", json.dumps(_GUIDED)),
        "--no-enable-log-requests",
        "--disable-uvicorn-access-log",
    ]
    variables |= {"VLLM_NO_USAGE_STATS": "1"}
    if build.is_cpu:
        flags += ["--enforce-eager", *(() if machine.has_bfloat16 else ("--dtype", "float32"))]
        variables["VLLM_CPU_KVCACHE_SPACE"] = os.environ.get("VLLM_CPU_KVCACHE_SPACE", "4")
    # `vllm serve` looks up its version under a package name that the CPU build does not have.
    start = (sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", hosting.model)
    secrets = {} if hosting.api_key is None else {"VLLM_API_KEY": hosting.api_key}
    return Launch((*start, *source, *flags, *hosting.further), variables, secrets)


def _identify(hosting: Hosting) -> tuple[str, list[str], dict[str, str]]:
    """Return the served name of the model, the flags that pin it, and their variables."""
    if Path(hosting.model).is_dir():
        if hosting.revision is not None:
            message = f"{hosting.model} is a folder: --revision is for models of the hub"
            raise SetupError(message)
        return Path(hosting.model).resolve().name, [], {"HF_HUB_OFFLINE": "1"}
    revision = hosting.revision
    if revision is None and hosting.model == DEFAULT_MODEL:
        revision = DEFAULT_REVISION
    if revision is None or not re.fullmatch(r"[0-9a-f]{40}", revision):
        message = (
            f"give --revision with the commit of {hosting.model} (40 hexadecimal digits): a name "
            "that moves is not frozen. The model's page at the hub lists its commits"
        )
        raise SetupError(message)
    return hosting.model, ["--revision", revision, "--tokenizer-revision", revision], {}


def _check_access(hosting: Hosting) -> None:
    for flag in hosting.further:
        if flag.partition("=")[0].replace("_", "-") in _OURS:
            message = f"give {flag} before the --: the server checks it"
            raise SetupError(message)
    if hosting.api_key is None and not is_loopback(hosting.host):
        message = (
            f"refusing to listen on {hosting.host} without an API key: give --api-key or set "
            f"{_KEY_VARIABLE} (at least {_KEY_LETTERS} characters), or listen on 127.0.0.1"
        )
        raise SetupError(message)
    if hosting.api_key is not None and len(hosting.api_key) < _KEY_LETTERS:
        message = f"the API key needs at least {_KEY_LETTERS} characters"
        raise SetupError(message)


def _check_build(build: Build | None, machine: Machine) -> Build:
    if build is None:
        message = (
            "vLLM is not installed here: pip install 'reward-server[lm]' on a machine with a GPU; "
            "docs/lm.md says how without one"
        )
        raise SetupError(message)
    if not build.is_cpu and not machine.has_accelerator:
        message = (
            f"vLLM {build.version} is built for GPUs and there is none here: docs/lm.md says how "
            "to install the build for CPUs"
        )
        raise SetupError(message)
    return build


def _installed() -> Build | None:
    for name in ("vllm-cpu", "vllm"):
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        return Build(version, is_cpu=name == "vllm-cpu" or "cpu" in version)
    return None


def _inspect_machine() -> Machine:
    devices = Path("/dev")
    return Machine(
        has_accelerator=any(any(devices.glob(pattern)) for pattern in _DEVICES),
        has_bfloat16="bf16" in Path("/proc/cpuinfo").read_text(),
    )
