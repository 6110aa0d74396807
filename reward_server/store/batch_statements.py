"""SQL statements on batches: many jobs at a time, passed as arrays in one round trip."""

from __future__ import annotations

from sqlalchemy import text

from reward_server.store.job_statements import DIALECT
from reward_server.store.queue_statements import NEXT_ATTEMPT
from reward_server.store.tables import jobs

COLUMNS = (
    "id", "idempotency_key", "body_digest", "task_id", "completion", "code", "run_id", "step",
    "sample_id", "parent_id", "prompt_kind", "wall_seconds", "priority", "client",
    "budget_seconds",
)  # fmt: skip
_NAMES = ", ".join(COLUMNS)
_LISTS = ", ".join(f"CAST(:{name} AS {jobs.c[name].type.compile(DIALECT)}[])" for name in COLUMNS)

# As ACCEPT, for many jobs: a row returns for each job that is to be run, new or again. ORDER BY
# makes Postgres lock the keys in the order of the arrays, which the caller sorts: two batches that
# share keys cannot deadlock. `now()` is the same for all rows of a transaction, so a microsecond
# per item keeps the items of a batch in their order in the queue.
ACCEPT_ALL = text(f"""
    INSERT INTO jobs ({_NAMES}, created_at)
    SELECT {_NAMES}, now() + place * interval '1 microsecond'
    FROM unnest({_LISTS}, CAST(:place AS integer[])) WITH ORDINALITY
        AS item ({_NAMES}, place, position)
    ORDER BY position
    ON CONFLICT (idempotency_key) DO UPDATE
    SET state = 'queued', attempt = {NEXT_ATTEMPT}, faults = 0, error_kind = NULL,
        error_message = NULL, worker = NULL, lease_until = NULL, started_at = NULL,
        deadline_at = NULL, not_before = now(), created_at = excluded.created_at,
        finished_at = NULL
    WHERE jobs.state IN ('errored', 'cancelled') AND jobs.body_digest = excluded.body_digest
    RETURNING id, idempotency_key
""")  # noqa: S608 - made of column names

FIND_BY_KEYS = text("""
    SELECT id, idempotency_key, body_digest, state FROM jobs
    WHERE idempotency_key = ANY (CAST(:keys AS text[]))
""")

CREATE = text("INSERT INTO batches (min_complete, rest) VALUES (:min_complete, :rest) RETURNING id")

ADD = text("""
    INSERT INTO batch_items (batch_id, place, job_id, is_own)
    SELECT CAST(:batch_id AS uuid), item.*
    FROM unnest(CAST(:places AS integer[]), CAST(:job_ids AS uuid[]), CAST(:are_own AS boolean[]))
        AS item (place, job_id, is_own)
""")

BATCH = text("SELECT id, min_complete, rest FROM batches WHERE id = :batch_id")

_ITEMS = """
    SELECT place, job_id, state, error_kind, error_message
    FROM batch_items JOIN jobs ON jobs.id = job_id
    WHERE batch_id = :batch_id {which} ORDER BY finished_at NULLS LAST, place
"""
ITEMS = text(_ITEMS.format(which=""))

ITEMS_OF = text(_ITEMS.format(which="AND job_id = ANY (CAST(:job_ids AS uuid[]))"))

# A batch is complete when enough of its jobs have a reward, or when none is left to wait for. Then
# the jobs that this batch created and no other batch contains are cancelled, if the batch says so.
# SKIP LOCKED: a batch that another process is closing at this moment is left to that process.
CLOSE = text("""
    WITH complete AS (
        SELECT id FROM batches
        WHERE closed_at IS NULL AND (CAST(:batch_id AS uuid) IS NULL OR id = :batch_id) AND (
            SELECT count(*) FILTER (WHERE state IN ('scored', 'failed')) >= min_complete
                OR count(*) FILTER (WHERE state IN ('queued', 'running')) = 0
            FROM batch_items JOIN jobs ON jobs.id = job_id WHERE batch_id = batches.id
        )
        FOR UPDATE SKIP LOCKED
    ), closed AS (
        UPDATE batches SET closed_at = now() FROM complete WHERE batches.id = complete.id
        RETURNING batches.id, rest
    )
    UPDATE jobs SET state = 'cancelled', finished_at = now(), worker = NULL, lease_until = NULL
    FROM batch_items AS item JOIN closed ON closed.id = item.batch_id
    WHERE closed.rest = 'cancel' AND jobs.id = item.job_id AND item.is_own
        AND jobs.state IN ('queued', 'running')
        AND NOT EXISTS (
            SELECT 1 FROM batch_items AS other
            WHERE other.job_id = jobs.id AND other.batch_id <> item.batch_id
        )
    RETURNING jobs.id
""")
