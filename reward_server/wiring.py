"""The one place that knows which implementation stands behind each protocol."""

from __future__ import annotations

import asyncio
import hashlib
import os
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from reward_server.api.answers import PartOut
from reward_server.api.services import Services
from reward_server.errors import SetupError
from reward_server.grade.process import GradingLimits, ProcessGrader
from reward_server.instrument.endpoint import Endpoint, EndpointState
from reward_server.instrument.lm import LmInstrumenter
from reward_server.instrument.off import OffInstrumenter
from reward_server.instrument.process import StaticInstrumenter
from reward_server.instrument.prompts import Mode
from reward_server.jobs.admission import Admission
from reward_server.jobs.bounds import Bounds
from reward_server.jobs.desk import Desk
from reward_server.jobs.endings import Endings
from reward_server.jobs.foresight import AskingAhead, NoForesight
from reward_server.jobs.janitor import PERIOD_SECONDS, Rounds, keep_house
from reward_server.jobs.listener import listen
from reward_server.jobs.memory import Memory
from reward_server.jobs.meter import Meter
from reward_server.jobs.presence import find_dead, present
from reward_server.jobs.recording import PatientRecorder
from reward_server.jobs.worker import Terms, Worker
from reward_server.model import Limits
from reward_server.pipeline import Rooms
from reward_server.reward.normalised import NormalisedScheme
from reward_server.reward.paper import PaperScheme
from reward_server.reward.percentile import PercentileScheme
from reward_server.sandbox.base import Capacity
from reward_server.sandbox.bubblewrap import BubblewrapSandbox
from reward_server.sandbox.docker_posture import refuse_odd_path
from reward_server.settings import (
    BubblewrapSettings,
    DockerSettings,
    LmSettings,
    NormalisedSettings,
    PaperSettings,
    PercentileSettings,
)
from reward_server.store.batches import Batches
from reward_server.store.embedded import embedded_postgres
from reward_server.store.engine import make_engine, upgrade
from reward_server.store.queries import Store
from reward_server.store.queue import Queue
from reward_server.tasks.briefing.briefings import Briefings
from reward_server.tasks.briefing.packages import installed_packages, pinned_packages
from reward_server.tasks.mlebench import Allowance, Competitions, find_competitions, read_directions
from reward_server.tasks.registry import Registry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from uuid import UUID

    from sqlalchemy.ext.asyncio import AsyncEngine

    from reward_server.instrument.base import Instrumenter, PlacementCache
    from reward_server.jobs.foresight import Foresight
    from reward_server.reward.base import Scheme
    from reward_server.sandbox.base import Sandbox
    from reward_server.settings import RewardSettings, Settings
    from reward_server.tasks.briefing.packages import Package

_LARGEST_ARTIFACT_BYTES = 1 << 30
_IMAGES = Path(__file__).parent.parent / "sandbox_images"
_MOST_AHEAD = 4
_ASKED_AHEAD = 256


@dataclass(frozen=True, slots=True)
class _Database:
    """The rooms of the store, over one pool of connections."""

    engine: AsyncEngine
    store: Store
    queue: Queue
    batches: Batches


@asynccontextmanager
async def open_services(settings: Settings, *, works: bool = True) -> AsyncIterator[Services]:
    """Start everything a server needs, in order, and stop it again in the reverse order.

    Without `works` it only takes jobs in, for workers elsewhere.

    Raises:
        SetupError: when a prerequisite is missing; the text names the remedy.
    """
    async with AsyncExitStack() as stack:
        database = await _open_database(settings, stack)
        registry = make_registry(settings)
        endings, meter = Endings(database.queue), Meter()
        chosen = settings.instrument
        endpoint = make_endpoint(chosen) if works and isinstance(chosen, LmSettings) else None
        worker = None
        if works:
            parts = _Parts(settings, database, registry, endings, meter)
            worker = await _open_worker(parts, endpoint, stack)
        quotas = {name: c.queued for name, c in settings.clients.items() if c.queued is not None}
        admission = Admission(database.queue, endings, settings.queue_limit, quotas)
        desk = Desk(
            database.store,
            database.batches,
            registry,
            endings,
            admission,
            make_bounds(settings),
            worker,
        )
        await _open_background(settings, database, endings, worker, stack, admission)
        yield Services(
            settings,
            desk,
            database.store,
            registry,
            make_briefings(settings),
            meter,
            lambda: _describe_lm(endpoint),
        )


@asynccontextmanager
async def open_worker(settings: Settings, meter: Meter) -> AsyncIterator[Worker]:
    """Start everything that running jobs needs, and no server.

    Raises:
        SetupError: when a prerequisite is missing; the text names the remedy.
    """
    async with AsyncExitStack() as stack:
        database = await _open_database(settings, stack)
        registry = make_registry(settings)
        endings, chosen = Endings(database.queue), settings.instrument
        endpoint = make_endpoint(chosen) if isinstance(chosen, LmSettings) else None
        parts = _Parts(settings, database, registry, endings, meter)
        worker = await _open_worker(parts, endpoint, stack)
        await _open_background(settings, database, endings, worker, stack)
        yield worker


@dataclass(frozen=True, slots=True)
class _Parts:
    settings: Settings
    database: _Database
    registry: Registry
    endings: Endings
    meter: Meter


async def _open_worker(parts: _Parts, endpoint: Endpoint | None, stack: AsyncExitStack) -> Worker:
    settings, queue = parts.settings, parts.database.queue
    rooms = await _open_rooms(settings, parts.database.store, parts.registry, endpoint, stack)
    foresight: Foresight = NoForesight()
    if endpoint is not None:
        foresight = AskingAhead(rooms.instrumenter, _ASKED_AHEAD)
    stack.push_async_callback(foresight.aclose)
    jobs = settings.jobs
    terms = Terms(
        slots=settings.slots,
        ahead=min(settings.slots, _MOST_AHEAD) if jobs.ahead is None else jobs.ahead,
        lease_seconds=jobs.lease_seconds,
        drain_seconds=jobs.drain_seconds,
        max_attempts=settings.max_attempts,
    )
    memory = Memory(parts.database.store) if jobs.reuse else None
    worker = Worker(
        rooms, queue, parts.registry, parts.endings, terms, foresight, parts.meter, memory
    )
    dead = find_dead(settings.data_dir, await queue.workers())
    await queue.expire(settings.max_attempts, dead)
    stack.enter_context(present(settings.data_dir, worker.claim.worker))
    return await stack.enter_async_context(worker)


async def _open_background(  # noqa: PLR0913, PLR0917 - one argument a collaborator
    settings: Settings,
    database: _Database,
    endings: Endings,
    worker: Worker | None,
    stack: AsyncExitStack,
    admission: Admission | None = None,
) -> None:
    """Start what goes on beside all requests and jobs."""
    group = await stack.enter_async_context(asyncio.TaskGroup())

    def on_ended(job_id: UUID) -> None:
        endings.tell(job_id)
        if worker is not None:
            group.create_task(worker.look_after(job_id))

    on_waiting = (lambda: None) if worker is None else worker.wake
    jobs = settings.jobs
    rounds = Rounds(
        settings.data_dir, jobs.lease_seconds, jobs.queue_seconds, settings.max_attempts
    )
    loops = [
        listen(database.engine, on_waiting, on_ended),
        keep_house(database.queue, database.batches, endings, rounds),
    ]
    if admission is not None:
        await admission.count()
        loops.append(admission.keep_counting())
    tasks = [group.create_task(loop) for loop in loops]

    async def stop() -> None:
        for task in tasks:
            task.cancel()

    stack.push_async_callback(stop)


def make_bounds(settings: Settings) -> Bounds:
    """Return what decides how long a job can take."""
    chosen = settings.instrument
    instrument_seconds = chosen.deadline_seconds * 4
    if isinstance(chosen, LmSettings):
        instrument_seconds += chosen.lm_deadline_seconds
    return Bounds(
        max_attempts=settings.max_attempts,
        instrument_seconds=instrument_seconds,
        wall_seconds=settings.limits.wall_seconds,
        grade_seconds=settings.grade.deadline_seconds,
        lease_seconds=settings.jobs.lease_seconds,
        queue_seconds=settings.jobs.queue_seconds,
        round_seconds=PERIOD_SECONDS,
    )


@asynccontextmanager
async def open_store(settings: Settings) -> AsyncIterator[Store]:
    """Reach the database the settings name; the embedded one is started, or joined if it runs.

    Raises:
        SetupError: when it cannot be started; the text names the remedy.
    """
    async with AsyncExitStack() as stack:
        yield (await _open_database(settings, stack)).store


async def _open_database(settings: Settings, stack: AsyncExitStack) -> _Database:
    if settings.database_url is None:
        postgres = embedded_postgres(settings.data_dir)
        url = await asyncio.to_thread(postgres.__enter__)
        stack.push(postgres.__exit__)
    else:
        url = settings.database_url.get_secret_value()
    engine = make_engine(url)
    stack.push_async_callback(engine.dispose)
    await upgrade(engine)
    return _Database(engine, Store(engine), Queue(engine), Batches(engine))


def make_registry(settings: Settings) -> Registry:
    """Return the tasks of the settings: those of folders, and MLE-bench's where it is asked for.

    Raises:
        SetupError: when a card is wrong, or MLE-bench is asked for and not there.
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


async def _open_rooms(
    settings: Settings,
    store: Store,
    registry: Registry,
    endpoint: Endpoint | None,
    stack: AsyncExitStack,
) -> Rooms:
    instrumenter = make_instrumenter(settings, endpoint, store)
    stack.push_async_callback(instrumenter.aclose)
    if endpoint is not None:
        await endpoint.start()
    sandbox = make_sandbox(settings, registry.public_folders())
    stack.push_async_callback(sandbox.aclose)
    await sandbox.start()
    limits = GradingLimits(wall_seconds=settings.grade.deadline_seconds)
    grader = ProcessGrader(settings.grade.processes, limits)
    stack.push_async_callback(grader.aclose)
    await grader.start()
    return Rooms(
        instrumenter=instrumenter,
        sandbox=sandbox,
        grader=grader,
        scheme=make_scheme(settings.reward),
        recorder=PatientRecorder(store),
        ceiling=_ceiling(settings),
    )


def make_endpoint(chosen: LmSettings) -> Endpoint:
    """Return the door to the language model."""
    return Endpoint(
        chosen.url,
        chosen.model,
        deadline_seconds=chosen.lm_deadline_seconds,
        context_tokens=chosen.context_tokens,
        api_key=None if chosen.api_key is None else chosen.api_key.get_secret_value(),
        connections=chosen.connections,
    )


def _describe_lm(endpoint: Endpoint | None) -> PartOut:
    if endpoint is None:
        return PartOut(ready=True, detail="not used")
    return PartOut(ready=endpoint.state is EndpointState.READY, detail=endpoint.describes)


def make_instrumenter(
    settings: Settings, endpoint: Endpoint | None = None, cache: PlacementCache | None = None
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
    """Return the docker sandbox, whose library is there only where it is asked for.

    Raises:
        SetupError: when the library is not installed, or data lies where it cannot be mounted.
    """
    try:
        from reward_server.sandbox.docker import DockerSandbox  # noqa: PLC0415
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
    """Return where the engine finds a folder of ours; it may live outside our own container."""
    folder, data_dir = folder.absolute(), data_dir.absolute()
    if host_data_dir is None:
        return folder
    if not folder.is_relative_to(data_dir):
        message = f"{folder} is not below {data_dir}: a server in a container can mount no other"
        raise SetupError(message)
    return host_data_dir / folder.relative_to(data_dir)


def data_dirs(settings: Settings) -> tuple[Path, ...]:
    """Return every directory that public data is shown to programs from."""
    if settings.mlebench is None:
        return (settings.data_dir,)
    return settings.data_dir, settings.mlebench.data_dir


def make_capacity(settings: Settings) -> Capacity:
    """Return what programs have of this machine together."""
    return Capacity(settings.slots, settings.memory_budget, settings.contended_above)


def packages_digest(environment: Path) -> str:
    """Return the digest of the names and versions of all packages a program may import."""
    found = environment.glob("lib/python3*/site-packages/*.dist-info")
    tools = ("pip-", "setuptools-", "wheel-")
    names = sorted(path.name for path in found if not path.name.startswith(tools))
    return hashlib.sha256("\n".join(names).encode()).hexdigest()


def make_briefings(settings: Settings) -> Briefings:
    """Return what tells models about tasks, with the limits and packages of this server."""
    return Briefings(_ceiling(settings), find_packages(settings))


def find_packages(settings: Settings) -> tuple[Package, ...]:
    """Return what programs can import: as installed, or for our own images as they are pinned."""
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


def _ceiling(settings: Settings) -> Limits:
    limits = settings.limits
    return Limits(
        wall_seconds=limits.wall_seconds,
        memory_bytes=limits.memory_bytes,
        disk_bytes=limits.disk_bytes,
        processes=limits.processes,
        open_files=limits.open_files,
        output_bytes=limits.output_bytes,
        artifact_bytes=_LARGEST_ARTIFACT_BYTES,
        cores=min(limits.cores, len(os.sched_getaffinity(0))),
    )
