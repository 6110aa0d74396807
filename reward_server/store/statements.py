"""The statements of the hot path, as text: each is one transaction and one round trip."""

from __future__ import annotations

from sqlalchemy import make_url, text

from reward_server.store.tables import jobs, solutions

_DIALECT = make_url("postgresql+asyncpg://").get_dialect()()
_FROM_JOB = ("task_id", "run_id", "step", "sample_id", "parent_id", "prompt_kind", "attempt")
_MADE_HERE = ("id", "job_id", "created_at", *_FROM_JOB)
_FROM_VERDICT = [column for column in solutions.c if column.name not in _MADE_HERE]
_NAMES = ", ".join(("job_id", *_FROM_JOB, *(column.name for column in _FROM_VERDICT)))
_VALUES = ", ".join(
    f"CAST(:{column.name} AS {column.type.compile(_DIALECT)})" for column in _FROM_VERDICT
)
_SOLUTION_COLUMNS = ", ".join(column.name for column in solutions.c)
_JOB_COLUMNS = ", ".join(column.name for column in jobs.c)

# Returns a row when the job is the caller's to run: it is new, or it had errored.
ACCEPT = text("""
    INSERT INTO jobs (idempotency_key, body_digest, task_id, completion, code, run_id, step,
        sample_id, parent_id, prompt_kind, wall_seconds)
    VALUES (:idempotency_key, :body_digest, :task_id, :completion, :code, :run_id, :step,
        :sample_id, :parent_id, :prompt_kind, :wall_seconds)
    ON CONFLICT (idempotency_key) DO UPDATE
    SET state = 'queued', attempt = jobs.attempt + 1, error_kind = NULL, error_message = NULL,
        started_at = NULL, finished_at = NULL
    WHERE jobs.state = 'errored' AND jobs.body_digest = excluded.body_digest
    RETURNING id, state, attempt
""")

FIND_BY_KEY = text("SELECT id, state, attempt, body_digest FROM jobs WHERE idempotency_key = :key")

# A job that was running already lost its worker: the new attempt fences off the old one.
BEGIN = text("""
    UPDATE jobs
    SET state = 'running', started_at = now(),
        attempt = CASE state WHEN 'running' THEN attempt + 1 ELSE attempt END
    WHERE id = :job_id AND state IN ('queued', 'running')
    RETURNING attempt
""")

# The worker itself tries again: the new attempt fences off whatever is left of the old one.
RETRY = text("""
    UPDATE jobs SET state = 'running', started_at = now(), attempt = attempt + 1
    WHERE id = :job_id AND attempt = :attempt AND state IN ('queued', 'running')
    RETURNING attempt
""")

RECORD = text(f"""
    WITH ended AS (
        UPDATE jobs SET state = CAST(:status AS text), finished_at = now()
        WHERE id = :job_id AND attempt = :attempt AND state IN ('queued', 'running')
        RETURNING id, {", ".join(_FROM_JOB)}
    )
    INSERT INTO solutions ({_NAMES})
    SELECT id, {", ".join(_FROM_JOB)}, {_VALUES} FROM ended
    RETURNING id, created_at
""")  # noqa: S608 - made of column names

FAIL = text("""
    UPDATE jobs
    SET state = 'errored', error_kind = :kind, error_message = :message, finished_at = now()
    WHERE id = :job_id AND attempt = :attempt AND state IN ('queued', 'running')
    RETURNING id
""")

CANCEL = text("""
    UPDATE jobs SET state = 'cancelled', finished_at = now()
    WHERE id = :job_id AND state IN ('queued', 'running')
    RETURNING id
""")

JOB = text(f"SELECT {_JOB_COLUMNS} FROM jobs WHERE id = :job_id")  # noqa: S608

UNFINISHED = text(f"""
    SELECT {_JOB_COLUMNS} FROM jobs WHERE state IN ('queued', 'running') ORDER BY created_at, id
""")  # noqa: S608

ANSWER = text(f"SELECT {_SOLUTION_COLUMNS} FROM solutions WHERE job_id = :job_id")  # noqa: S608

SOLUTION = text(f"SELECT {_SOLUTION_COLUMNS} FROM solutions WHERE id = :id")  # noqa: S608

HAS_SOLUTION = text("SELECT 1 FROM solutions WHERE id = :id")

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

# The oldest first, from the place of a solution on, so that lines added meanwhile come last.
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

# A value that is there already stays untouched, its time too.
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
