"""Starting all parts in order, and stopping them in the reverse order.

Which implementation each part is, `wiring.py` knows.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reward_server.api.schemas.answers import PartOut
from reward_server.api.services import Services
from reward_server.bootstrap.implementations import (
    make_briefings,
    make_ceiling,
    make_deadlines,
    make_endpoint,
    make_instrumenter,
    make_prompt_service,
    make_registry,
    make_retention,
    make_run_code_limits,
    make_sandbox,
    make_scheme,
)
from reward_server.grade.process import GradingLimits, ProcessGrader
from reward_server.instrument.lm.endpoint import EndpointState, LmEndpoint
from reward_server.jobs.admission import Admission
from reward_server.jobs.listener import listen
from reward_server.jobs.metrics import Metrics
from reward_server.jobs.notifier import CompletionNotifier
from reward_server.jobs.retention import keep_forgetting
from reward_server.jobs.run_code import RunCodeService
from reward_server.jobs.service import JobService
from reward_server.jobs.workers.liveness import find_dead, present
from reward_server.jobs.workers.prefetcher import InstrumentationPrefetcher, NoPrefetcher
from reward_server.jobs.workers.reaper import ReaperConfig, run_reaper
from reward_server.jobs.workers.recorder import RetryingRecorder
from reward_server.jobs.workers.result_cache import ResultCache
from reward_server.jobs.workers.worker import Worker, WorkerConfig
from reward_server.pipeline import Stages
from reward_server.settings import LmSettings
from reward_server.store.batches import Batches
from reward_server.store.engine import make_engine, upgrade
from reward_server.store.postgres.embedded import embedded_postgres
from reward_server.store.queries import Store
from reward_server.store.queue import Queue
from reward_server.store.solutions.archive import Archive
from reward_server.store.solutions.parents import Parents

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from uuid import UUID

    from sqlalchemy.ext.asyncio import AsyncEngine

    from reward_server.jobs.workers.prefetcher import Prefetcher
    from reward_server.settings import Settings
    from reward_server.tasks.registry import Registry

_MOST_AHEAD = 4
_ASKED_AHEAD = 256


@dataclass(frozen=True, slots=True)
class _Database:
    """The rooms of the store, over one pool of connections."""

    engine: AsyncEngine
    store: Store
    queue: Queue
    batches: Batches
    archive: Archive
    parents: Parents


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
        endings, meter = CompletionNotifier(database.queue), Metrics()
        chosen = settings.instrument
        endpoint = make_endpoint(chosen) if works and isinstance(chosen, LmSettings) else None
        worker = None
        if works:
            parts = _Parts(settings, database, registry, endings, meter)
            worker = await _open_worker(parts, endpoint, stack)
        quotas = {name: c.queued for name, c in settings.clients.items() if c.queued is not None}
        admission = Admission(database.queue, endings, settings.queue_limit, quotas)
        desk = JobService(
            database.store,
            database.batches,
            registry,
            endings,
            admission,
            make_deadlines(settings),
            worker,
        )
        errands = None
        if worker is not None:
            errands = RunCodeService(make_run_code_limits(settings), worker, admission, meter)
        await _open_background(settings, database, endings, worker, stack, admission)
        briefings = make_briefings(settings)
        yield Services(
            settings,
            desk,
            database.store,
            database.archive,
            registry,
            briefings,
            make_prompt_service(settings, registry, briefings, database.parents),
            meter,
            lambda: _describe_lm(endpoint),
            errands,
        )


@asynccontextmanager
async def open_worker(settings: Settings, meter: Metrics) -> AsyncIterator[Worker]:
    """Start everything that running jobs needs, and no server.

    Raises:
        SetupError: when a prerequisite is missing; the text names the remedy.
    """
    async with AsyncExitStack() as stack:
        database = await _open_database(settings, stack)
        registry = make_registry(settings)
        endings, chosen = CompletionNotifier(database.queue), settings.instrument
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
    endings: CompletionNotifier
    meter: Metrics


async def _open_worker(parts: _Parts, endpoint: LmEndpoint | None, stack: AsyncExitStack) -> Worker:
    settings, queue = parts.settings, parts.database.queue
    rooms = await _open_stages(settings, parts.database.store, parts.registry, endpoint, stack)
    foresight: Prefetcher = NoPrefetcher()
    if endpoint is not None:
        foresight = InstrumentationPrefetcher(rooms.instrumenter, _ASKED_AHEAD)
    stack.push_async_callback(foresight.aclose)
    jobs = settings.jobs
    terms = WorkerConfig(
        slots=settings.slots,
        ahead=min(settings.slots, _MOST_AHEAD) if jobs.ahead is None else jobs.ahead,
        lease_seconds=jobs.lease_seconds,
        drain_seconds=jobs.drain_seconds,
        max_attempts=settings.max_attempts,
    )
    memory = ResultCache(parts.database.store) if jobs.reuse else None
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
    endings: CompletionNotifier,
    worker: Worker | None,
    stack: AsyncExitStack,
    admission: Admission | None = None,
) -> None:
    """Start what goes on beside all requests and jobs."""
    group = await stack.enter_async_context(asyncio.TaskGroup())

    def on_ended(job_id: UUID) -> None:
        endings.hear(job_id)
        if worker is not None:
            group.create_task(worker.look_after(job_id))

    on_waiting = (lambda: None) if worker is None else worker.wake
    jobs = settings.jobs
    rounds = ReaperConfig(
        settings.data_dir, jobs.lease_seconds, jobs.queue_seconds, settings.max_attempts
    )
    loops = [
        listen(database.engine, on_waiting, on_ended),
        run_reaper(database.queue, database.batches, endings, rounds),
        keep_forgetting(database.archive.pruning, make_retention(settings.retention)),
    ]
    if admission is not None:
        await admission.count()
        loops.append(admission.keep_counting())
    tasks = [group.create_task(loop) for loop in loops]

    async def stop() -> None:
        for task in tasks:
            task.cancel()

    stack.push_async_callback(stop)


@asynccontextmanager
async def open_archive(settings: Settings) -> AsyncIterator[Archive]:
    """Reach what looks at the store as a whole, as `open_store` does.

    Raises:
        SetupError: when the database cannot be started; the text names the remedy.
    """
    async with AsyncExitStack() as stack:
        yield (await _open_database(settings, stack)).archive


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
    return _Database(
        engine,
        Store(engine),
        Queue(engine),
        Batches(engine),
        Archive.over(engine),
        Parents(engine),
    )


async def _open_stages(
    settings: Settings,
    store: Store,
    registry: Registry,
    endpoint: LmEndpoint | None,
    stack: AsyncExitStack,
) -> Stages:
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
    return Stages(
        instrumenter=instrumenter,
        sandbox=sandbox,
        grader=grader,
        scheme=make_scheme(settings.reward),
        recorder=RetryingRecorder(store),
        ceiling=make_ceiling(settings),
    )


def _describe_lm(endpoint: LmEndpoint | None) -> PartOut:
    if endpoint is None:
        return PartOut(ready=True, detail="not used")
    return PartOut(ready=endpoint.state is EndpointState.READY, detail=endpoint.describes)
