"""The one place that decides which implementation stands behind each protocol."""

from __future__ import annotations

import hashlib
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from reward_server.errors import SetupError
from reward_server.instrument.lm.endpoint import LmEndpoint
from reward_server.instrument.lm.instrumenter import LmInstrumenter
from reward_server.instrument.lm.prompts import Mode
from reward_server.instrument.off import OffInstrumenter
from reward_server.instrument.parser import StaticInstrumenter
from reward_server.jobs.deadlines import DeadlineConfig
from reward_server.jobs.retention import Retention
from reward_server.jobs.run_code import RunCodeLimits
from reward_server.jobs.workers.reaper import PERIOD_SECONDS
from reward_server.model import Limits
from reward_server.prompts.chat_tokens import ChatTokenCounter
from reward_server.prompts.service import PromptDefaults, PromptService
from reward_server.reward.normalised import NormalisedScheme
from reward_server.reward.paper import PaperScheme
from reward_server.reward.percentile import PercentileScheme
from reward_server.sandbox.base import Capacity
from reward_server.sandbox.bubblewrap.sandbox import BubblewrapSandbox
from reward_server.sandbox.docker.container_config import refuse_odd_path
from reward_server.settings import (
    BubblewrapSettings,
    DockerSettings,
    LmSettings,
    NormalisedSettings,
    PaperSettings,
    PercentileSettings,
)
from reward_server.tasks.briefing.briefings import Briefings
from reward_server.tasks.briefing.packages import installed_packages, pinned_packages
from reward_server.tasks.mlebench import Allowance, Competitions, find_competitions, read_directions
from reward_server.tasks.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reward_server.instrument.base import Instrumenter, PlacementCache
    from reward_server.reward.base import Scheme
    from reward_server.sandbox.base import Sandbox
    from reward_server.settings import RetentionSettings, RewardSettings, Settings
    from reward_server.store.solutions.parents import Parents
    from reward_server.tasks.briefing.packages import Package

_DAY_SECONDS = 86_400.0
_MAX_ARTIFACT_BYTES = 1 << 30
_WAITING_BYTES = 1 << 29
_IMAGES = Path(__file__).parents[2] / "sandbox_images"


def make_deadlines(settings: Settings) -> DeadlineConfig:
    """Return what bounds the time a job can take."""
    chosen = settings.instrument
    instrument_seconds = chosen.deadline_seconds * 4
    if isinstance(chosen, LmSettings):
        instrument_seconds += chosen.lm_deadline_seconds
    return DeadlineConfig(
        max_attempts=settings.max_attempts,
        instrument_seconds=instrument_seconds,
        wall_seconds=settings.limits.wall_seconds,
        grade_seconds=settings.grade.deadline_seconds,
        lease_seconds=settings.jobs.lease_seconds,
        queue_seconds=settings.jobs.queue_seconds,
        reaper_seconds=PERIOD_SECONDS,
        programs_before=max(1, math.ceil((settings.jobs.ahead or 0) / settings.slots)),
    )


def make_registry(settings: Settings) -> Registry:
    """Return the tasks of the settings: those of folders, and MLE-bench's if it is configured.

    Raises:
        SetupError: when a card is wrong, or MLE-bench is configured but not installed.
    """
    chosen = settings.mlebench
    if chosen is None:
        return Registry(settings.data_dir, settings.task_folders)
    competitions = Competitions(
        find_competitions(chosen.package),
        chosen.data_dir,
        Allowance(chosen.wall_seconds, chosen.memory_bytes),
        read_directions(chosen.directions),
    )
    return Registry(settings.data_dir, settings.task_folders, competitions)


def make_endpoint(chosen: LmSettings) -> LmEndpoint:
    """Return the client of the language model's endpoint."""
    return LmEndpoint(
        chosen.url,
        chosen.model,
        deadline_seconds=chosen.lm_deadline_seconds,
        context_tokens=chosen.context_tokens,
        api_key=None if chosen.api_key is None else chosen.api_key.get_secret_value(),
        connections=chosen.connections,
    )


def make_instrumenter(
    settings: Settings, endpoint: LmEndpoint | None = None, cache: PlacementCache | None = None
) -> Instrumenter:
    """Return the instrumenter the settings ask for."""
    chosen = settings.instrument
    match chosen.kind:
        case "static":
            return StaticInstrumenter(chosen.processes, chosen.deadline_seconds)
        case "off":
            return OffInstrumenter(chosen.processes, chosen.deadline_seconds)
        case "lm":
            return LmInstrumenter(
                StaticInstrumenter(chosen.processes, chosen.deadline_seconds),
                endpoint or make_endpoint(chosen),
                cache,
                mode=Mode(chosen.mode),
                merge=chosen.merge,
            )
        case never:
            assert_never(never)


def make_scheme(chosen: RewardSettings) -> Scheme:
    """Return the reward scheme with these numbers."""
    match chosen:
        case PaperSettings():
            return PaperScheme(chosen.failure, chosen.milestone, chosen.valid_floor)
        case NormalisedSettings():
            return NormalisedScheme(chosen.failure, chosen.milestone)
        case PercentileSettings():
            return PercentileScheme(chosen.failure, chosen.milestone)
        case never:
            assert_never(never)


def make_sandbox(settings: Settings, publics: Sequence[Path] = ()) -> Sandbox:
    """Return the sandbox the settings ask for."""
    chosen = settings.sandbox
    match chosen:
        case BubblewrapSettings():
            image = f"cpu@sha256:{packages_digest(chosen.environment)[:16]}"
            preload = chosen.preload if chosen.kind == "zygote" else None
            return BubblewrapSandbox(
                chosen.environment,
                image,
                make_capacity(settings),
                chosen.first_uid,
                preload,
                publics,
            )
        case DockerSettings():
            return _make_docker(settings, chosen)
        case never:
            assert_never(never)


def _make_docker(settings: Settings, chosen: DockerSettings) -> Sandbox:
    """Return the docker sandbox; its library is an optional dependency.

    Raises:
        SetupError: when the library is not installed, or the engine cannot mount a data directory.
    """
    try:
        from reward_server.sandbox.docker.sandbox import DockerSandbox  # noqa: PLC0415
    except ModuleNotFoundError as error:
        message = "the docker sandbox needs its library: pip install 'reward-server[docker]'"
        raise SetupError(message) from error
    for folder in data_dirs(settings):
        refuse_odd_path(_on_the_host(folder, settings.data_dir, chosen.host_data_dir))
    return DockerSandbox(
        chosen.image,
        make_capacity(settings),
        chosen.first_uid,
        engine=chosen.engine,
        runtime=chosen.runtime,
        gpus=chosen.gpus,
        is_warm=chosen.warm,
        to_host=lambda folder: _on_the_host(folder, settings.data_dir, chosen.host_data_dir),
    )


def _on_the_host(folder: Path, data_dir: Path, host_data_dir: Path | None) -> Path:
    """Return a folder's path for the engine, which may run outside the server's container."""
    folder, data_dir = folder.absolute(), data_dir.absolute()
    if host_data_dir is None:
        return folder
    if not folder.is_relative_to(data_dir):
        message = f"{folder} is not below {data_dir}: a server in a container can mount no other"
        raise SetupError(message)
    return host_data_dir / folder.relative_to(data_dir)


def data_dirs(settings: Settings) -> tuple[Path, ...]:
    """Return every directory with public data that programs see."""
    if settings.mlebench is None:
        return (settings.data_dir,)
    return settings.data_dir, settings.mlebench.data_dir


def make_capacity(settings: Settings) -> Capacity:
    """Return what all programs together may use of this machine."""
    return Capacity(settings.slots, settings.memory_budget, settings.contended_above)


def packages_digest(environment: Path) -> str:
    """Return the digest of the names and versions of all packages a program may import."""
    found = environment.glob("lib/python3*/site-packages/*.dist-info")
    tools = ("pip-", "setuptools-", "wheel-")
    names = sorted(path.name for path in found if not path.name.startswith(tools))
    return hashlib.sha256("\n".join(names).encode()).hexdigest()


def make_briefings(settings: Settings) -> Briefings:
    """Return the task descriptions for models, with this server's limits and packages."""
    return Briefings(make_ceiling(settings), find_packages(settings))


def make_prompt_service(
    settings: Settings, registry: Registry, briefings: Briefings, parents: Parents
) -> PromptService:
    """Return the prompt service, with the tokenizers of the settings.

    Raises:
        SetupError: when a tokenizer cannot be read.
    """
    chosen, sandbox = settings.prompts, settings.sandbox
    defaults = PromptDefaults(
        ceiling=make_ceiling(settings),
        budget_characters=chosen.budget_characters,
        temperature=chosen.temperature,
        failed_too=chosen.parents == "any",
        has_gpu=isinstance(sandbox, DockerSettings) and bool(sandbox.gpus),
    )
    counters = [ChatTokenCounter(name, path) for name, path in chosen.tokenizers.items()]
    return PromptService(registry, briefings, parents, counters, defaults)


def find_packages(settings: Settings) -> tuple[Package, ...]:
    """Return what programs can import: as installed, or as pinned for this project's images."""
    chosen = settings.sandbox
    match chosen:
        case BubblewrapSettings():
            return installed_packages(chosen.environment)
        case DockerSettings():
            name = chosen.image.rpartition("/")[2].partition("@")[0].partition(":")[0]
            kind = name.removeprefix("reward-server-")
            is_ours = name in ("reward-server-cpu", "reward-server-gpu")
            return pinned_packages(_IMAGES / kind / "requirements.txt") if is_ours else ()
        case never:
            assert_never(never)


def make_ceiling(settings: Settings) -> Limits:
    """Return the limits of every program, whatever its task's card says."""
    limits = settings.limits
    cores = min(limits.cores, len(os.sched_getaffinity(0)))
    return Limits(**limits.model_dump() | {"artifact_bytes": _MAX_ARTIFACT_BYTES, "cores": cores})


def make_run_code_limits(settings: Settings) -> RunCodeLimits:
    """Return the limits of ad hoc programs; by default each has one slot's share of memory."""
    chosen, ceiling = settings.run_code, make_ceiling(settings)
    memory_bytes = min(ceiling.memory_bytes, settings.memory_budget)
    return RunCodeLimits(
        ceiling=replace(
            ceiling,
            wall_seconds=min(chosen.wall_seconds, ceiling.wall_seconds),
            memory_bytes=memory_bytes,
            output_bytes=chosen.output_bytes,
            artifact_bytes=chosen.fetched_bytes,
            cores=1,
        ),
        memory_bytes=min(memory_bytes, settings.memory_budget // settings.slots),
        waiting=chosen.waiting,
        waiting_bytes=max(_WAITING_BYTES, chosen.body_bytes),
    )


def make_retention(settings: RetentionSettings) -> Retention:
    """Return how long outputs and solutions are kept."""
    outputs, solutions = settings.outputs_days, settings.solutions_days
    return Retention(
        outputs_seconds=None if outputs is None else outputs * _DAY_SECONDS,
        solutions_seconds=None if solutions is None else solutions * _DAY_SECONDS,
        keep_best=settings.keep_best,
    )
