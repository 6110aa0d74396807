"""Starting all parts in order, and stopping them in the reverse order.

`implementations.py` decides which implementation each part has.
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
from reward_server.jobs.retention import keep_pruning
from reward_server.jobs.run_code import RunCodeService
from reward_server.jobs.service import JobService
from reward_server.jobs.workers.attempt import AttemptRunner
from reward_server.jobs.workers.liveness import find_dead, hold_liveness_lock
from reward_server.jobs.workers.prefetcher import InstrumentationPrefetcher
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

    from reward_server.settings import Settings
    from reward_server.tasks.registry import Registry

_MAX_AHEAD = 4
_PREFETCHED_PROGRAMS = 256


@dataclass(frozen=True, slots=True)
class OpenDatabase:
    """The parts of the store, over one connection pool."""

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
        notifier, metrics = CompletionNotifier(database.queue), Metrics()
        chosen = settings.instrument
        endpoint = make_endpoint(chosen) if works and isinstance(chosen, LmSettings) else None
        worker = None
        if works:
            parts = _Parts(settings, database, registry, notifier, metrics)
            worker = await _open_worker(parts, endpoint, stack)
        quotas = {name: c.queued for name, c in settings.clients.items() if c.queued is not None}
        admission = Admission(database.queue, notifier, settings.queue_limit, quotas)
        job_service = JobService(
            database.store,
            database.batches,
            registry,
            notifier,
            admission,
            make_deadlines(settings),
            worker,
        )
        run_code = None
        if worker is not None:
            run_code = RunCodeService(make_run_code_limits(settings), worker, admission, metrics)
        await _open_background(settings, database, notifier, worker, stack, admission)
        briefings = make_briefings(settings)
        yield Services(
            settings,
            job_service,
            database.store,
            database.archive,
            registry,
            briefings,
            make_prompt_service(settings, registry, briefings, database.parents),
            metrics,
            lambda: _describe_lm(endpoint),
            run_code,
        )


@asynccontextmanager
async def open_worker(settings: Settings, metrics: Metrics) -> AsyncIterator[Worker]:
    """Start everything a worker needs to run jobs, without the API.

    Raises:
        SetupError: when a prerequisite is missing; the text names the remedy.
    """
    async with AsyncExitStack() as stack:
        database = await _open_database(settings, stack)
        registry = make_registry(settings)
        notifier, chosen = CompletionNotifier(database.queue), settings.instrument
        endpoint = make_endpoint(chosen) if isinstance(chosen, LmSettings) else None
        parts = _Parts(settings, database, registry, notifier, metrics)
        worker = await _open_worker(parts, endpoint, stack)
        await _open_background(settings, database, notifier, worker, stack)
        yield worker


@dataclass(frozen=True, slots=True)
class _Parts:
    settings: Settings
    database: OpenDatabase
    registry: Registry
    notifier: CompletionNotifier
    metrics: Metrics


async def _open_worker(parts: _Parts, endpoint: LmEndpoint | None, stack: AsyncExitStack) -> Worker:
    settings, queue, store = parts.settings, parts.database.queue, parts.database.store
    stages = await _open_stages(settings, store, parts.registry, endpoint, stack)
    prefetcher = None
    if endpoint is not None:
        prefetcher = InstrumentationPrefetcher(stages.instrumenter, _PREFETCHED_PROGRAMS)
        stack.push_async_callback(prefetcher.aclose)
    jobs = settings.jobs
    config = WorkerConfig(
        slots=settings.slots,
        ahead=min(settings.slots, _MAX_AHEAD) if jobs.ahead is None else jobs.ahead,
        lease_seconds=jobs.lease_seconds,
        drain_seconds=jobs.drain_seconds,
        max_attempts=settings.max_attempts,
    )
    runner = AttemptRunner(
        stages,
        queue,
        parts.registry,
        parts.notifier,
        parts.metrics,
        settings.max_attempts,
        ResultCache(store) if jobs.reuse else None,
    )
    worker = Worker(runner, queue, config, prefetcher)
    dead = find_dead(settings.data_dir, await queue.workers())
    await queue.expire(settings.max_attempts, dead)
    stack.enter_context(hold_liveness_lock(settings.data_dir, worker.lease_request.worker))
    return await stack.enter_async_context(worker)


async def _open_background(  # noqa: PLR0913, PLR0917 - one argument a collaborator
    settings: Settings,
    database: OpenDatabase,
    notifier: CompletionNotifier,
    worker: Worker | None,
    stack: AsyncExitStack,
    admission: Admission | None = None,
) -> None:
    """Start the background loops: notifications, the reaper, pruning, and counting the queue."""
    group = await stack.enter_async_context(asyncio.TaskGroup())

    def on_ended(job_id: UUID) -> None:
        notifier.on_notification(job_id)
        if worker is not None:
            group.create_task(worker.revoke_if_lost(job_id))

    on_waiting = (lambda: None) if worker is None else worker.wake
    jobs = settings.jobs
    reaper = ReaperConfig(
        settings.data_dir, jobs.lease_seconds, jobs.queue_seconds, settings.max_attempts
    )
    loops = [
        listen(database.engine, on_waiting, on_ended),
        run_reaper(database.queue, database.batches, notifier, reaper),
        keep_pruning(database.archive.pruning, make_retention(settings.retention)),
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
async def open_database(settings: Settings) -> AsyncIterator[OpenDatabase]:
    """Connect to the database of the settings; start the embedded one, or join it if it runs.

    Raises:
        SetupError: when it cannot start; the text names the remedy.
    """
    async with AsyncExitStack() as stack:
        yield await _open_database(settings, stack)


async def _open_database(settings: Settings, stack: AsyncExitStack) -> OpenDatabase:
    if settings.database_url is None:
        postgres = embedded_postgres(settings.data_dir)
        url = await asyncio.to_thread(postgres.__enter__)
        stack.push(postgres.__exit__)
    else:
        url = settings.database_url.get_secret_value()
    engine = make_engine(url)
    stack.push_async_callback(engine.dispose)
    await upgrade(engine)
    return OpenDatabase(
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
