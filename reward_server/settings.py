"""All settings, in one frozen tree.

Read from `REWARD_SERVER_…` variables (a double underscore goes one level down, so
`REWARD_SERVER_LIMITS__PROCESSES=64`), from `DATABASE_URL`, and from the command line, which
wins. An unknown variable with this prefix is an error.
"""

from __future__ import annotations

import ipaddress
import os
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    SecretStr,
    Tag,
    ValidationError,
    model_validator,
)
from pydantic_settings import BaseSettings, SettingsConfigDict

from reward_server.errors import SetupError
from reward_server.model import Milestone
from reward_server.sandbox.machine_memory import memory_bytes
from reward_server.tasks.base import TwinSize

PREFIX = "REWARD_SERVER_"
_GIB = 1 << 30


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


_PRELOAD = (
    *("numpy", "pandas", "scipy.sparse", "scipy.stats", "joblib", "threadpoolctl"),
    *("sklearn.compose", "sklearn.ensemble", "sklearn.feature_extraction.text", "sklearn.impute"),
    *("sklearn.linear_model", "sklearn.metrics", "sklearn.model_selection", "sklearn.naive_bayes"),
    *("sklearn.neighbors", "sklearn.pipeline", "sklearn.preprocessing", "sklearn.svm"),
    *("sklearn.tree", "lightgbm", "xgboost"),
)


class BubblewrapSettings(_Part):
    """Sandboxes made by bubblewrap: forked from a zygote, or each started from scratch."""

    kind: Literal["zygote", "bubblewrap"] = "zygote"
    preload: tuple[str, ...] = _PRELOAD
    environment: Path = Path(".venv-sandbox")
    slots: Annotated[int, Field(ge=1, le=1024)] | None = None
    first_uid: Annotated[int, Field(ge=1000, le=2_000_000_000)] = 61_000


class DockerSettings(_Part):
    """Sandboxes made by a container engine.

    `host_data_dir` is the path of `data_dir` for the engine, if the server runs in a container too.
    `gpus` are device identities; each slot has one, so there are at most as many slots as devices.
    """

    kind: Literal["docker"]
    image: Annotated[str, Field(min_length=1, max_length=512)] = "reward-server-cpu"
    engine: Annotated[str, Field(pattern=r"^unix:///")] | None = None
    runtime: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    host_data_dir: Path | None = None
    slots: Annotated[int, Field(ge=1, le=1024)] | None = None
    first_uid: Annotated[int, Field(ge=1000, le=2_000_000_000)] = 61_000
    gpus: tuple[str, ...] = ()
    warm: bool = True

    @model_validator(mode="after")
    def _check_gpus(self) -> Self:
        if len(set(self.gpus)) < len(self.gpus):
            message = "gpus names a device twice"
            raise ValueError(message)
        if self.gpus and self.slots is not None and self.slots > len(self.gpus):
            message = "slots is above the number of gpus: a program would have none"
            raise ValueError(message)
        return self


def _kind_of(part: object) -> object:
    return part.get("kind") if isinstance(part, dict) else getattr(part, "kind", None)


def _sandbox_of(sandbox: object) -> str:
    """Return the tag of a sandbox's settings; both kinds of bubblewrap share one."""
    return "docker" if _kind_of(sandbox) == "docker" else "bubblewrap"


SandboxSettings = Annotated[
    Annotated[BubblewrapSettings, Tag("bubblewrap")] | Annotated[DockerSettings, Tag("docker")],
    Discriminator(_sandbox_of),
]


class _ParsingSettings(_Part):
    """How programs are parsed, for every kind of instrumenter."""

    deadline_seconds: Annotated[float, Field(gt=0, le=600)] = 10.0
    processes: Annotated[int, Field(ge=1, le=64)] = 1


class StaticSettings(_ParsingSettings):
    """A static analyzer of the syntax tree places the markers, or nothing does."""

    kind: Literal["static", "off"] = "static"


class LmSettings(_ParsingSettings):
    """A language model behind an OpenAI-compatible endpoint places the markers.

    `lm_deadline_seconds` covers all requests about one program, and `context_tokens` bounds a
    request and its reply together.
    """

    kind: Literal["lm"]
    url: Annotated[str, Field(pattern=r"^https?://[^\s/@]+(/\S*)?$", max_length=1024)]
    model: Annotated[str, Field(min_length=1, max_length=512)] = "Qwen/Qwen2.5-3B-Instruct"
    mode: Literal["insert", "rewrite"] = "insert"
    merge: bool = False
    lm_deadline_seconds: Annotated[float, Field(gt=0, le=600)] = 30.0
    context_tokens: Annotated[int, Field(ge=1024, le=1 << 20)] = 8192
    api_key: SecretStr | None = None
    connections: Annotated[int, Field(ge=1, le=4096)] = 256


def _instrumenter_of(instrument: object) -> str:
    return "lm" if _kind_of(instrument) == "lm" else "static"


InstrumentSettings = Annotated[
    Annotated[StaticSettings, Tag("static")] | Annotated[LmSettings, Tag("lm")],
    Discriminator(_instrumenter_of),
]


class GradeSettings(_Part):
    """How submissions are graded."""

    deadline_seconds: Annotated[float, Field(gt=0, le=3600)] = 120.0
    processes: Annotated[int, Field(ge=1, le=64)] = 2


class LimitSettings(_Part):
    """The most one program may use; a task's card may lower it."""

    wall_seconds: Annotated[float, Field(gt=0, le=86_400)] = 3600.0
    memory_bytes: Annotated[int, Field(ge=64 << 20, le=4096 * _GIB)] = 8 * _GIB
    disk_bytes: Annotated[int, Field(ge=1 << 20, le=1024 * _GIB)] = 8 * _GIB
    processes: Annotated[int, Field(ge=1, le=65_536)] = 256
    open_files: Annotated[int, Field(ge=16, le=1 << 20)] = 1024
    output_bytes: Annotated[int, Field(ge=1 << 12, le=_GIB)] = 64 << 20
    cores: Annotated[int, Field(ge=1, le=1024)] = 1024


class JobSettings(_Part):
    """How workers lease jobs, and how long jobs may wait and take."""

    lease_seconds: Annotated[float, Field(ge=1, le=3600)] = 30.0
    drain_seconds: Annotated[float, Field(ge=0, le=86_400)] = 10.0
    queue_seconds: Annotated[float, Field(ge=1, le=30 * 86_400)] = 86_400.0
    ahead: Annotated[int, Field(ge=0, le=1024)] | None = None
    reuse: bool = False


class RunCodeSettings(_Part):
    """What `POST /run_code` accepts and returns.

    `output_bytes` bounds each of the two streams, `fetched_bytes` all fetched files of one program
    together, and `waiting` how many programs may wait for a slot at once.
    """

    wall_seconds: Annotated[float, Field(gt=0, le=86_400)] = 600.0
    output_bytes: Annotated[int, Field(ge=1 << 12, le=1 << 28)] = 8 << 20
    fetched_bytes: Annotated[int, Field(ge=1 << 10, le=1 << 28)] = 32 << 20
    body_bytes: Annotated[int, Field(ge=1 << 10, le=1 << 28)] = 32 << 20
    waiting: Annotated[int, Field(ge=1, le=100_000)] = 1024


class RetentionSettings(_Part):
    """How long outputs and losing solutions are kept; forever unless set.

    The `keep_best` best of every task on its data, the best of every run and all their ancestors
    are never pruned.
    """

    outputs_days: Annotated[float, Field(gt=0, le=36_500)] | None = None
    solutions_days: Annotated[float, Field(gt=0, le=36_500)] | None = None
    keep_best: Annotated[int, Field(ge=1, le=100_000)] = 100


class ClientSettings(_Part):
    """A client with its own key, and how many of its jobs may wait at once."""

    key: Annotated[SecretStr, Field(min_length=16)]
    queued: Annotated[int, Field(ge=1, le=1_000_000)] | None = None


class PromptSettings(_Part):
    """The defaults of prompts.

    `tokenizers` are folders of models, or files `tokenizer.json`, by the names that budgets
    in tokens use; `temperature` is in units of the reward.
    """

    budget_characters: Annotated[int, Field(ge=2000, le=1 << 20)] = 16_000
    tokenizers: dict[str, Path] = {}
    parents: Literal["valid", "any"] = "valid"
    temperature: Annotated[float, Field(ge=1e-6, le=1e6, allow_inf_nan=False)] = 0.1


def _mlebench_data_dir() -> Path:
    """Return where MLE-bench prepares data by default."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "mle-bench" / "data"


class MlebenchSettings(_Part):
    """MLE-bench's competitions as tasks; setting any of these turns them on.

    `package` is the folder of `mlebench` where it is not installed beside the server,
    `directions` a TOML file for competitions with an unclear leaderboard (`id = "lower"`).
    """

    data_dir: Path = Field(default_factory=_mlebench_data_dir)
    package: Path | None = None
    directions: Path | None = None
    wall_seconds: Annotated[float, Field(gt=0, le=86_400)] = 3600.0
    memory_bytes: Annotated[int, Field(ge=64 << 20, le=4096 * _GIB)] = 4 * _GIB


class PaperSettings(_Part):
    """The `paper` scheme's numbers."""

    kind: Literal["paper"] = "paper"
    failure: Annotated[float, Field(ge=-1000, le=0, allow_inf_nan=False)] = -10.0
    milestone: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)] = 0.1
    valid_floor: Annotated[float, Field(ge=-1e6, le=0, allow_inf_nan=False)] | None = -9.0


class _ShareSettings(_Part):
    """The numbers of a scheme whose valid submissions earn from 0 to 1."""

    failure: Annotated[float, Field(ge=-1000, le=0, allow_inf_nan=False)] = -1.0
    milestone: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)] = 0.1

    @model_validator(mode="after")
    def _keep_failures_below_zero(self) -> Self:
        if round(self.failure + len(Milestone) * self.milestone, 10) >= 0:
            message = f"failure and {len(Milestone)} times milestone must stay below 0"
            raise ValueError(message)
        return self


class NormalisedSettings(_ShareSettings):
    """The `normalised` scheme's numbers."""

    kind: Literal["normalised"] = "normalised"


class PercentileSettings(_ShareSettings):
    """The `percentile` scheme's numbers."""

    kind: Literal["percentile"] = "percentile"


def _scheme_of(reward: object) -> object:
    return _kind_of(reward) or "paper"


RewardSettings = Annotated[
    Annotated[PaperSettings, Tag("paper")]
    | Annotated[NormalisedSettings, Tag("normalised")]
    | Annotated[PercentileSettings, Tag("percentile")],
    Discriminator(_scheme_of),
]


class Settings(BaseSettings):
    """The whole tree."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True
    )

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 8000
    data_dir: Path = Path(".data")
    database_url: SecretStr | None = Field(
        default=None, validation_alias=AliasChoices("database_url", "DATABASE_URL")
    )
    api_key: SecretStr | None = Field(default=None, min_length=16)
    task_folders: tuple[Path, ...] = ()
    twin_size: TwinSize = TwinSize.SMALL
    clients: dict[str, ClientSettings] = {}
    queue_limit: Annotated[int, Field(ge=1, le=1_000_000)] = 20_000
    body_bytes: Annotated[int, Field(ge=1 << 10, le=64 << 20)] = 2 << 20
    batch_bytes: Annotated[int, Field(ge=1 << 10, le=1 << 30)] = 64 << 20
    max_attempts: Annotated[int, Field(ge=1, le=10)] = 3
    contended_above: Annotated[float, Field(gt=0, le=1)] = 0.1
    memory_budget_bytes: Annotated[int, Field(ge=64 << 20, le=4096 * _GIB)] | None = None
    sandbox: SandboxSettings = BubblewrapSettings()
    instrument: InstrumentSettings = StaticSettings()
    grade: GradeSettings = GradeSettings()
    limits: LimitSettings = LimitSettings()
    jobs: JobSettings = JobSettings()
    run_code: RunCodeSettings = RunCodeSettings()
    retention: RetentionSettings = RetentionSettings()
    reward: RewardSettings = PaperSettings()
    prompts: PromptSettings = PromptSettings()
    mlebench: MlebenchSettings | None = None

    @property
    def has_keys(self) -> bool:
        """Return whether every request needs a key."""
        return self.api_key is not None or bool(self.clients)

    @property
    def slots(self) -> int:
        """Return how many programs run at once: one per core unless set."""
        gpus = self.sandbox.gpus if isinstance(self.sandbox, DockerSettings) else ()
        cores = len(os.sched_getaffinity(0))
        return self.sandbox.slots or min(cores, len(gpus) or cores)

    @property
    def memory_budget(self) -> int:
        """Return how much the programs that run at once may use together: 90 % unless set."""
        return self.memory_budget_bytes or memory_bytes() * 9 // 10

    @property
    def is_loopback(self) -> bool:
        """Return whether only this machine can reach the server."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach this address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def load_settings(**overrides: object) -> Settings:
    """Read the settings; an override that is `None` counts as missing.

    Raises:
        SetupError: for a value out of bounds, an unknown variable, or an address that others
            can reach without a key.
    """
    _refuse_unknown_variables()
    given = {name: value for name, value in overrides.items() if value is not None}
    try:
        settings = Settings(**given)  # type: ignore[arg-type]
    except ValidationError as error:
        lines = (f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise SetupError("settings: " + "; ".join(lines)) from None
    if not settings.has_keys and not settings.is_loopback:
        message = (
            f"refusing to listen on {settings.host} without an API key: set {PREFIX}API_KEY "
            "(at least 16 characters), or listen on 127.0.0.1"
        )
        raise SetupError(message)
    return settings


def _refuse_unknown_variables() -> None:
    for name in os.environ:
        first = name.upper().removeprefix(PREFIX).partition("__")[0].lower()
        if name.upper().startswith(PREFIX) and first not in Settings.model_fields:
            message = f"unknown setting {name}: `reward-server check` lists all settings"
            raise SetupError(message)
