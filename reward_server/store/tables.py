"""The tables of the store: accepted jobs and the solutions they end in.

A worker leases a running job until `lease_until`, in the database's time. `attempt` is the fencing
token: only the holder of the current attempt can write. `faults` counts the attempts that failed
through the server's fault. `batches` list jobs by index; a job may be in several batches. A trigger
notifies listeners of every job that is queued or has ended.

`placements` caches the markers that a language model placed in a program; its `places` are line,
column and milestone in turn. `rewards` has the rewards of solutions under other schemes than the
one in their answer, which never changes.

`code_chars` and `family` are a program's length and kind of model, so that queries need not read
the code; `server_version` is the version that scored it. They are null in older rows.

Invariants are constraints here, not habits of the code. `parent_id` has no foreign key, because a
lineage may lead to a solution that was pruned.
"""

from __future__ import annotations

from sqlalchemy import (
    ARRAY,
    DDL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    Table,
    Text,
    Uuid,
    event,
    false,
    func,
    text,
)

from reward_server.store.solutions.search import WORDS

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)


def _finite(name: str) -> CheckConstraint:
    # Postgres sorts NaN above every number, so this constraint refuses NaN as well.
    return CheckConstraint(f"{name} > '-Infinity' AND {name} < 'Infinity'", f"{name}_is_finite")


jobs = Table(
    "jobs",
    metadata,
    Column("id", Uuid, primary_key=True, server_default=func.gen_random_uuid()),
    Column("idempotency_key", Text, unique=True),
    Column("body_digest", Text, nullable=False),
    Column("task_id", Text, nullable=False),
    Column("completion", Text),
    Column("code", Text),
    Column("run_id", Text, nullable=False),
    Column("step", BigInteger),
    Column("sample_id", Text),
    Column("parent_id", Uuid),
    Column("prompt_kind", Text, nullable=False),
    Column("wall_seconds", Double),
    Column("priority", SmallInteger, nullable=False, server_default="0"),
    Column("client", Text, nullable=False, server_default=""),
    Column("budget_seconds", Double, nullable=False, server_default="86400"),
    Column("state", Text, nullable=False, server_default="queued"),
    Column("attempt", Integer, nullable=False, server_default="1"),
    Column("faults", Integer, nullable=False, server_default="0"),
    Column("worker", Uuid),
    Column("lease_until", DateTime(timezone=True)),
    Column("not_before", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("deadline_at", DateTime(timezone=True)),
    Column("error_kind", Text),
    Column("error_message", Text),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("started_at", DateTime(timezone=True)),
    Column("finished_at", DateTime(timezone=True)),
    CheckConstraint(
        "state IN ('queued', 'running', 'scored', 'failed', 'errored', 'cancelled')",
        "state_is_known",
    ),
    CheckConstraint("(completion IS NULL) <> (code IS NULL)", "one_source"),
    CheckConstraint("attempt >= 1", "attempt_is_positive"),
    CheckConstraint("(state = 'errored') = (error_kind IS NOT NULL)", "errored_has_kind"),
    CheckConstraint(
        "(state = 'running') = (lease_until IS NOT NULL)"
        " AND (lease_until IS NULL) = (worker IS NULL)",
        "running_is_leased",
    ),
)

Index(
    "ix_jobs_waiting",
    jobs.c.run_id,
    jobs.c.priority.desc(),
    jobs.c.created_at,
    jobs.c.id,
    postgresql_where=jobs.c.state == "queued",
)
Index(
    "ix_jobs_served",
    jobs.c.run_id,
    jobs.c.started_at,
    postgresql_where=jobs.c.started_at.is_not(None),
)
Index("ix_jobs_leased", jobs.c.lease_until, postgresql_where=jobs.c.state == "running")

# NOTIFY is transactional: listeners hear of a change only after it is committed, and never of one
# that is rolled back. A trigger covers every statement, also those of other processes.
_NOTIFY_FUNCTION = DDL(  # type: ignore[no-untyped-call]
    """
CREATE FUNCTION tell_jobs() RETURNS trigger LANGUAGE plpgsql AS $tell$
BEGIN
    IF NEW.state = 'queued' THEN
        PERFORM pg_notify('jobs_waiting', '');
    ELSIF NEW.state <> 'running' THEN
        PERFORM pg_notify('jobs_ended', NEW.id::text);
    END IF;
    RETURN NULL;
END $tell$;
"""
)
_NOTIFY_TRIGGER = DDL(  # type: ignore[no-untyped-call]
    """
CREATE TRIGGER jobs_are_told AFTER INSERT OR UPDATE OF state ON jobs
FOR EACH ROW EXECUTE FUNCTION tell_jobs();
"""
)
event.listen(jobs, "after_create", _NOTIFY_FUNCTION)
event.listen(jobs, "after_create", _NOTIFY_TRIGGER)

batches = Table(
    "batches",
    metadata,
    Column("id", Uuid, primary_key=True, server_default=func.gen_random_uuid()),
    Column("min_complete", Integer, nullable=False),
    Column("rest", Text, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("closed_at", DateTime(timezone=True)),
    CheckConstraint("rest IN ('continue', 'cancel')", "rest_is_known"),
    CheckConstraint("min_complete >= 1", "min_complete_is_positive"),
)
Index("ix_batches_open", batches.c.created_at, postgresql_where=batches.c.closed_at.is_(None))

batch_items = Table(
    "batch_items",
    metadata,
    Column("batch_id", Uuid, ForeignKey("batches.id"), primary_key=True),
    Column("place", Integer, primary_key=True),
    Column("job_id", Uuid, ForeignKey("jobs.id"), nullable=False, index=True),
    Column("is_own", Boolean, nullable=False),
)

solutions = Table(
    "solutions",
    metadata,
    Column("id", Uuid, primary_key=True, server_default=func.gen_random_uuid()),
    Column("job_id", Uuid, ForeignKey("jobs.id"), nullable=False, unique=True),
    Column("task_id", Text, nullable=False),
    Column("run_id", Text, nullable=False),
    Column("step", BigInteger),
    Column("sample_id", Text),
    Column("parent_id", Uuid),
    Column("prompt_kind", Text, nullable=False),
    Column("code", Text, nullable=False),
    Column("plan", Text, nullable=False),
    Column("program_digest", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("reward", Double, nullable=False),
    Column("score", Double),
    Column("higher_is_better", Boolean, nullable=False),
    Column("valid", Boolean, nullable=False),
    Column("error_kind", Text),
    Column("error_message", Text),
    Column("milestones", ARRAY(SmallInteger), nullable=False),
    Column("duration_seconds", Double, nullable=False),
    Column("cpu_seconds", Double, nullable=False),
    Column("queue_seconds", Double, nullable=False),
    Column("instrument_seconds", Double, nullable=False),
    Column("boot_seconds", Double, nullable=False),
    Column("execute_seconds", Double, nullable=False),
    Column("grade_seconds", Double, nullable=False),
    Column("total_seconds", Double, nullable=False),
    Column("peak_memory_bytes", BigInteger, nullable=False),
    Column("stdout_tail", Text, nullable=False),
    Column("stderr_tail", Text, nullable=False),
    Column("instrumentation_kind", Text, nullable=False),
    Column("instrumentation_model", Text),
    Column("instrumentation_verified", Boolean, nullable=False),
    Column("instrumentation_reason", Text),
    Column("sandbox_kind", Text, nullable=False),
    Column("sandbox_image", Text, nullable=False),
    Column("exit_code", Integer),
    Column("pressure", Double),
    Column("contended", Boolean, nullable=False, server_default=false()),
    Column("reused_from", Uuid),
    Column("code_chars", Integer),
    Column("family", Text),
    Column("server_version", Text),
    Column("data_digest", Text, nullable=False),
    Column("scheme", Text, nullable=False),
    Column("scheme_version", Integer, nullable=False, server_default="1"),
    Column("attempt", Integer, nullable=False),
    Column("medal", Text),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    CheckConstraint("status IN ('scored', 'failed')", "status_is_known"),
    CheckConstraint("valid = (status = 'scored')", "valid_is_scored"),
    CheckConstraint("(error_kind IS NULL) = valid", "invalid_has_kind"),
    CheckConstraint("(error_kind IS NULL) = (error_message IS NULL)", "kind_has_message"),
    _finite("reward"),
    _finite("score"),
    _finite("duration_seconds"),
    Index("ix_solutions_words", text(WORDS), postgresql_using="gin"),
)

Index(None, solutions.c.reward, solutions.c.id)
Index(None, solutions.c.created_at, solutions.c.id)
Index(None, solutions.c.duration_seconds, solutions.c.id)
Index(None, solutions.c.task_id, solutions.c.reward, solutions.c.id)
Index(None, solutions.c.run_id, solutions.c.created_at, solutions.c.id)
Index(None, solutions.c.program_digest, solutions.c.run_id)
Index(None, solutions.c.parent_id, postgresql_where=solutions.c.parent_id.is_not(None))
_OF_DATA = (solutions.c.task_id, solutions.c.data_digest, solutions.c.valid)
_OF_RUN = (solutions.c.run_id, *_OF_DATA)
Index("ix_solutions_best_of_task", *_OF_DATA, solutions.c.reward, solutions.c.id)
Index("ix_solutions_best_of_run", *_OF_RUN, solutions.c.reward, solutions.c.id)
Index("ix_solutions_steps", *_OF_RUN, solutions.c.step, solutions.c.id)

rewards = Table(
    "rewards",
    metadata,
    Column("solution_id", Uuid, ForeignKey("solutions.id", ondelete="CASCADE"), primary_key=True),
    Column("scheme", Text, primary_key=True),
    Column("scheme_version", Integer, primary_key=True),
    Column("value", Double, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    _finite("value"),
)

placements = Table(
    "placements",
    metadata,
    Column("program_digest", Text, primary_key=True),
    Column("mode", Text, primary_key=True),
    Column("model", Text, primary_key=True),
    Column("prompt_version", Integer, primary_key=True),
    Column("places", ARRAY(Integer), nullable=False),
    Column("reason", Text),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    CheckConstraint("cardinality(places) % 3 = 0", "places_are_triples"),
)
