"""SQL statements on the queue: leases of jobs.

All times are the database's, so the clocks of workers do not matter. A job leaves `running` with a
new attempt number or for good: a worker that held an earlier lease cannot write any more.
"""

from __future__ import annotations

from sqlalchemy import text

# The number of every attempt but the first, wherever one is queued: a retry, a released or expired
# lease, and an ended job that is accepted again. The worker of the attempt before can then write
# nothing more, as its statements name an attempt that is no longer the job's own.
NEXT_ATTEMPT = "jobs.attempt + 1"
_BACK = "worker = NULL, lease_until = NULL"
_LEASE = "now() + make_interval(secs => CAST(:lease_seconds AS double precision))"
_SUBMISSION = (
    "task_id, completion, code, run_id, step, sample_id, parent_id, prompt_kind, wall_seconds"
)

# Leases jobs. Runs take turns: the run with the fewest jobs under way goes first, and among equals
# the one that was served longest ago.
# - `waiting` is a loose index scan (one index probe per run), so its cost grows with the number of
#   runs and not with the length of the queue.
# - `head` reads a few more jobs than are wanted, because concurrent workers may lock some of them.
# - FOR UPDATE SKIP LOCKED lets workers lease in parallel: none waits for a row that another one is
#   leasing, and no row is leased twice. The state is checked again under the lock.
# - `state || ''` hides the column from the planner, which would otherwise read the whole partial
#   index of queued jobs to find the few that were chosen.
# - `deadline_at` is set by the first lease only: retries do not extend a job's time.
CLAIM = text(f"""
    WITH RECURSIVE waiting (run_id) AS (
        (SELECT run_id FROM jobs WHERE state = 'queued' ORDER BY run_id LIMIT 1)
        UNION ALL
        SELECT (SELECT jobs.run_id FROM jobs
            WHERE state = 'queued' AND jobs.run_id > waiting.run_id ORDER BY jobs.run_id LIMIT 1)
        FROM waiting WHERE waiting.run_id IS NOT NULL
    ), held AS (
        SELECT run_id, count(*) AS jobs FROM jobs WHERE state = 'running' GROUP BY run_id
    ), ranked AS (
        SELECT head.id, head.priority, head.created_at, served.started_at AS served_at,
            COALESCE(held.jobs, 0) + row_number() OVER (
                PARTITION BY waiting.run_id ORDER BY head.priority DESC, head.created_at, head.id
            ) AS turn
        FROM waiting LEFT JOIN held USING (run_id) CROSS JOIN LATERAL (
            SELECT id, priority, created_at FROM jobs
            WHERE state = 'queued' AND jobs.run_id = waiting.run_id AND not_before <= now()
                AND task_id = ANY (:task_ids)
            ORDER BY priority DESC, created_at, id LIMIT :most + 16
        ) AS head LEFT JOIN LATERAL (
            SELECT started_at FROM jobs
            WHERE jobs.run_id = waiting.run_id AND started_at IS NOT NULL
            ORDER BY started_at DESC LIMIT 1
        ) AS served ON true
        WHERE waiting.run_id IS NOT NULL
    ), chosen AS (
        SELECT jobs.id FROM ranked JOIN jobs ON jobs.id = ranked.id
        WHERE jobs.state || '' = 'queued'
        ORDER BY ranked.priority DESC, ranked.turn, ranked.served_at NULLS FIRST,
            ranked.created_at, ranked.id
        LIMIT :most FOR UPDATE OF jobs SKIP LOCKED
    )
    UPDATE jobs SET state = 'running', worker = :worker, lease_until = {_LEASE},
        started_at = now(),
        deadline_at = COALESCE(deadline_at, now() + make_interval(secs => budget_seconds))
    FROM chosen WHERE jobs.id = chosen.id AND jobs.state = 'queued'
    RETURNING jobs.id, attempt, {_SUBMISSION},
        GREATEST(0, EXTRACT(epoch FROM clock_timestamp() - jobs.created_at)) AS waited_seconds,
        EXTRACT(epoch FROM deadline_at - now()) AS left_seconds
""")  # noqa: S608 - made of constants

PEEK = text("""
    SELECT id FROM jobs
    WHERE state = 'queued' ORDER BY priority DESC, created_at, id LIMIT :most
""")

SUBMISSIONS = text(f"""
    SELECT id, {_SUBMISSION} FROM jobs WHERE id = ANY (CAST(:job_ids AS uuid[]))
""")  # noqa: S608

RENEW = text(f"""
    UPDATE jobs SET lease_until = {_LEASE}
    WHERE worker = :worker AND state = 'running' AND id = ANY (:job_ids)
    RETURNING id, attempt
""")  # noqa: S608

RETRY = text(f"""
    UPDATE jobs SET state = 'queued', attempt = {NEXT_ATTEMPT}, faults = faults + :fault, {_BACK},
        not_before = now() + make_interval(secs => CAST(:pause_seconds AS double precision))
    WHERE id = :job_id AND attempt = :attempt AND state = 'running'
        AND faults + :fault < :max_attempts AND now() < deadline_at
    RETURNING id
""")  # noqa: S608

FAIL = text(f"""
    UPDATE jobs SET state = 'errored', error_kind = :kind, error_message = :message,
        finished_at = now(), {_BACK}
    WHERE id = :job_id AND attempt = :attempt AND state = 'running'
    RETURNING id
""")  # noqa: S608

RELEASE = text(f"""
    UPDATE jobs SET state = 'queued', attempt = {NEXT_ATTEMPT}, {_BACK}
    WHERE worker = :worker AND state = 'running' RETURNING id
""")  # noqa: S608

# A worker that did not renew a lease in time has lost the job. SKIP LOCKED passes over a row that
# its worker is renewing or recording at this moment; `is_last` is computed from the locked row.
EXPIRE = text(f"""
    UPDATE jobs SET faults = faults + 1, {_BACK},
        state = CASE WHEN is_last THEN 'errored' ELSE 'queued' END,
        attempt = CASE WHEN is_last THEN attempt ELSE {NEXT_ATTEMPT} END,
        error_kind = CASE WHEN is_last THEN 'worker_lost' END,
        error_message = CASE WHEN is_last THEN 'given up after repeated interruptions' END,
        finished_at = CASE WHEN is_last THEN now() END
    FROM (
        SELECT id AS lost_id, faults + 1 >= :max_attempts OR deadline_at <= now() AS is_last
        FROM jobs WHERE state = 'running'
            AND (lease_until < now() OR worker = ANY (CAST(:dead AS uuid[])))
        FOR UPDATE SKIP LOCKED
    ) AS lost
    WHERE id = lost_id AND state = 'running'
    RETURNING id
""")  # noqa: S608

GIVE_UP = text("""
    UPDATE jobs SET state = 'errored', error_kind = 'sandbox_unavailable',
        error_message = 'no worker took the job in time', finished_at = now()
    WHERE state = 'queued'
        AND created_at < now() - make_interval(secs => CAST(:queue_seconds AS double precision))
    RETURNING id
""")

WORKERS = text("SELECT DISTINCT worker FROM jobs WHERE state = 'running'")

DEPTH = text("""
    SELECT client, count(*) AS queued,
        EXTRACT(epoch FROM now() - min(created_at)) AS oldest_seconds
    FROM jobs WHERE state = 'queued' GROUP BY client
""")

RUNNING = text("SELECT count(*) AS running FROM jobs WHERE state = 'running'")

# A job that does not exist counts as ended: there is nothing left to wait for.
ENDED = text("""
    SELECT wanted.id FROM unnest(CAST(:job_ids AS uuid[])) AS wanted (id)
        LEFT JOIN jobs ON jobs.id = wanted.id
    WHERE jobs.id IS NULL OR state NOT IN ('queued', 'running')
""")
