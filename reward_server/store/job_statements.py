"""SQL statements on jobs and solutions: each is one transaction and one round trip.

A statement that has to read, decide and write does all three at once (a CTE, or an upsert with a
condition), so that no other transaction can change a row between the decision and the write.
"""

from __future__ import annotations

from sqlalchemy import make_url, text

from reward_server.store.queue_statements import NEXT_ATTEMPT
from reward_server.store.tables import jobs, solutions

DIALECT = make_url("postgresql+asyncpg://").get_dialect()()
_FROM_JOB = ("task_id", "run_id", "step", "sample_id", "parent_id", "prompt_kind", "attempt")
_MADE_HERE = ("id", "job_id", "created_at", *_FROM_JOB)
_FROM_VERDICT = [column for column in solutions.c if column.name not in _MADE_HERE]
_NAMES = ", ".join(("job_id", *_FROM_JOB, *(column.name for column in _FROM_VERDICT)))
_VALUES = ", ".join(
    f"CAST(:{column.name} AS {column.type.compile(DIALECT)})" for column in _FROM_VERDICT
)
_SOLUTION_COLUMNS = ", ".join(column.name for column in solutions.c)
_JOB_COLUMNS = ", ".join(column.name for column in jobs.c)

# Returns a row if there is something to run: the job is new, or it had errored or was cancelled.
# The unique index on the key decides between concurrent requests: exactly one inserts, the others
# wait for it in ON CONFLICT and then see its row. Without a match in WHERE nothing is updated and
# no row returns, which tells the caller to join. A new attempt number fences off earlier attempts.
# `created_at` is the time of the statement, since it orders the queue. The trigger on `jobs` sends
# the notification in this transaction: listeners hear of a job only once it is committed.
ACCEPT = text(f"""
    INSERT INTO jobs (idempotency_key, body_digest, task_id, completion, code, run_id, step,
        sample_id, parent_id, prompt_kind, wall_seconds, priority, client, budget_seconds,
        created_at, state, worker, lease_until, started_at, deadline_at)
    SELECT :idempotency_key, :body_digest, :task_id, :completion, :code, :run_id,
        CAST(:step AS bigint), :sample_id, CAST(:parent_id AS uuid), :prompt_kind,
        CAST(:wall_seconds AS double precision), CAST(:priority AS smallint), :client,
        CAST(:budget_seconds AS double precision),
        clock_timestamp(), CASE WHEN worker IS NULL THEN 'queued' ELSE 'running' END, worker,
        CASE WHEN worker IS NOT NULL
            THEN now() + make_interval(secs => CAST(:lease_seconds AS double precision)) END,
        CASE WHEN worker IS NOT NULL THEN now() END,
        CASE WHEN worker IS NOT NULL
            THEN now() + make_interval(secs => CAST(:budget_seconds AS double precision)) END
    FROM (SELECT CAST(:worker AS uuid) AS worker) AS claim
    ON CONFLICT (idempotency_key) DO UPDATE
    SET state = excluded.state, attempt = {NEXT_ATTEMPT}, faults = 0, error_kind = NULL,
        error_message = NULL, worker = excluded.worker, lease_until = excluded.lease_until,
        started_at = excluded.started_at, deadline_at = excluded.deadline_at,
        not_before = now(), created_at = excluded.created_at, finished_at = NULL
    WHERE jobs.state IN ('errored', 'cancelled') AND jobs.body_digest = excluded.body_digest
    RETURNING id, state, attempt
""")  # noqa: S608 - made of constants

FIND_BY_KEY = text("SELECT id, state, attempt, body_digest FROM jobs WHERE idempotency_key = :key")

# The UPDATE is the fence: it matches only the current attempt of a running job. A worker whose
# lease was taken away matches no row, so `ended` is empty and the INSERT adds nothing. Closing the
# job and storing its solution in one statement means that one never exists without the other.
# Columns that describe the submission come from the job's row, so a solution cannot disagree with
# its job.
RECORD = text(f"""
    WITH ended AS (
        UPDATE jobs SET state = CAST(:status AS text), finished_at = clock_timestamp(),
            worker = NULL, lease_until = NULL
        WHERE id = :job_id AND attempt = :attempt AND state = 'running'
        RETURNING id, {", ".join(_FROM_JOB)}
    )
    INSERT INTO solutions ({_NAMES})
    SELECT id, {", ".join(_FROM_JOB)}, {_VALUES} FROM ended
    RETURNING id, created_at, {", ".join(_FROM_JOB)}
""")  # noqa: S608 - made of column names

# Clearing worker and lease makes the attempt invalid: its worker cannot renew or record any more.
CANCEL = text("""
    UPDATE jobs SET state = 'cancelled', finished_at = now(), worker = NULL, lease_until = NULL
    WHERE id = :job_id AND state IN ('queued', 'running')
    RETURNING id
""")

# One branch for each partial index: one covers queued jobs, the other leased ones. The state is
# checked again in the UPDATE, because a job may have been leased or have ended since the CTE read
# it.
CANCEL_STEPS = text("""
    WITH unwanted AS (
        SELECT id FROM jobs WHERE state = 'queued'
            AND run_id = :run_id AND step <= :up_to_step AND client = :client
        UNION ALL
        SELECT id FROM jobs WHERE state = 'running'
            AND run_id = :run_id AND step <= :up_to_step AND client = :client
    )
    UPDATE jobs SET state = 'cancelled', finished_at = now(), worker = NULL, lease_until = NULL
    FROM unwanted WHERE jobs.id = unwanted.id AND state IN ('queued', 'running')
    RETURNING jobs.id
""")

JOB = text(f"SELECT {_JOB_COLUMNS} FROM jobs WHERE id = :job_id")  # noqa: S608

STANDING = text("SELECT state, error_kind, error_message FROM jobs WHERE id = :job_id")

ANSWERS = text(
    f"SELECT {_SOLUTION_COLUMNS} FROM solutions WHERE job_id = ANY (:job_ids)"  # noqa: S608
)

ANSWER = text(f"SELECT {_SOLUTION_COLUMNS} FROM solutions WHERE job_id = :job_id")  # noqa: S608

SOLUTION = text(f"SELECT {_SOLUTION_COLUMNS} FROM solutions WHERE id = :id")  # noqa: S608

# A verdict that can replace another run of the same program. Excluded are outcomes that depend on
# the machine (time-outs, exhausted memory, contention) and verdicts that were reused themselves.
TWIN = text(f"""
    SELECT {_SOLUTION_COLUMNS} FROM solutions
    WHERE program_digest = :program_digest AND run_id = :run_id AND task_id = :task_id
        AND data_digest = :data_digest AND sandbox_kind = :sandbox_kind
        AND sandbox_image = :sandbox_image AND reused_from IS NULL AND NOT contended
        AND COALESCE(error_kind, '') NOT IN ('timeout', 'oom')
    ORDER BY created_at, id LIMIT 1
""")  # noqa: S608

KNOWN_SOLUTIONS = text("SELECT id FROM solutions WHERE id = ANY (CAST(:ids AS uuid[]))")

# `seen` ends the recursion where a lineage contains a cycle, which imported data may have.
ANCESTORS = text("""
    WITH RECURSIVE line (id, parent_id, reward, depth, seen) AS (
        SELECT id, parent_id, reward, 0, ARRAY[id] FROM solutions WHERE id = :id
        UNION ALL
        SELECT parent.id, parent.parent_id, parent.reward, depth + 1, seen || parent.id
        FROM line JOIN solutions AS parent ON parent.id = line.parent_id
        WHERE depth < :depth AND parent.id <> ALL (seen)
    )
    SELECT id, reward FROM line WHERE depth > 0 ORDER BY depth
""")

CHILDREN = text("""
    SELECT id, reward FROM solutions
    WHERE parent_id = :id AND id <> :id ORDER BY reward DESC, id DESC LIMIT :most
""")

# Keyset pagination, oldest first: solutions that are added meanwhile come last, and a deep page
# costs no more than the first.
OUTCOMES = text("""
    SELECT id, created_at, task_id, reward, score, higher_is_better, error_kind, error_message,
        milestones, duration_seconds, cpu_seconds, sandbox_kind, sandbox_image, data_digest
    FROM solutions
    WHERE (CAST(:task_id AS text) IS NULL OR task_id = :task_id)
        AND (CAST(:run_id AS text) IS NULL OR run_id = :run_id)
        AND (CAST(:after_id AS uuid) IS NULL
            OR (created_at, id) > (CAST(:after_time AS timestamptz), :after_id))
    ORDER BY created_at, id LIMIT :most
""")

COUNT_OUTCOMES = text("""
    SELECT count(*) AS number FROM solutions
    WHERE (CAST(:task_id AS text) IS NULL OR task_id = :task_id)
        AND (CAST(:run_id AS text) IS NULL OR run_id = :run_id)
""")

# A row whose value is unchanged is not written, so it keeps its time and makes no dead tuple.
KEEP_REWARDS = text("""
    INSERT INTO rewards (solution_id, scheme, scheme_version, value)
    SELECT solution_id, CAST(:scheme AS text), CAST(:scheme_version AS integer), value
    FROM unnest(CAST(:solution_ids AS uuid[]), CAST(:values AS double precision[]))
        AS found (solution_id, value)
    ON CONFLICT (solution_id, scheme, scheme_version) DO UPDATE
    SET value = excluded.value, created_at = now()
    WHERE rewards.value <> excluded.value
    RETURNING solution_id
""")

REWARDS = text("""
    SELECT DISTINCT ON (scheme) scheme, scheme_version, value, created_at FROM rewards
    WHERE solution_id = :id ORDER BY scheme, scheme_version DESC
""")

PING = text("SELECT 1")

PLACEMENT = text("""
    SELECT places, reason FROM placements
    WHERE program_digest = :program_digest AND mode = :mode AND model = :model
        AND prompt_version = :prompt_version
""")

KEEP_PLACEMENT = text("""
    INSERT INTO placements (program_digest, mode, model, prompt_version, places, reason)
    VALUES (:program_digest, :mode, :model, :prompt_version, CAST(:places AS integer[]), :reason)
    ON CONFLICT DO NOTHING
    RETURNING prompt_version
""")
