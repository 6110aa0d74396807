"""Generates many solutions inside the database: a million take minutes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.ext.asyncio import AsyncEngine

STEP_SIZE = 128
RUN_STEPS = 40
_CHUNK = 20_000
_FAMILIES = ("lightgbm", "xgboost", "linear", "forest", "neural_net", "svm", "bayes", "other")

# Row number -> run of 40 steps of 128 samples; every run belongs to one task.
_FILL = text("""
    WITH made AS (
        INSERT INTO jobs (body_digest, task_id, code, run_id, step, prompt_kind, state)
        SELECT 'made',
            (CAST(:tasks AS text[]))[1 + at / CAST(:run_size AS bigint)
                % CAST(:task_count AS bigint)], 'made',
            'run-' || at / CAST(:run_size AS bigint),
            at % CAST(:run_size AS bigint) / CAST(:step_size AS bigint), 'scratch',
            CASE WHEN random() < 0.7 THEN 'scored' ELSE 'failed' END
        FROM generate_series(CAST(:first AS bigint), CAST(:last AS bigint)) AS at
        RETURNING id, task_id, run_id, step, prompt_kind, state
    ), drawn AS (
        SELECT *, state = 'scored' AS is_valid, random() AS luck,
            CAST(2000 + 4000 * random() AS integer) AS chars
        FROM made
    )
    INSERT INTO solutions (job_id, task_id, run_id, step, prompt_kind, code, plan, program_digest,
        status, reward, score, higher_is_better, valid, error_kind, error_message, milestones,
        duration_seconds, cpu_seconds, queue_seconds, instrument_seconds, boot_seconds,
        execute_seconds, grade_seconds, total_seconds, peak_memory_bytes, stdout_tail, stderr_tail,
        instrumentation_kind, instrumentation_verified, sandbox_kind, sandbox_image, data_digest,
        scheme, attempt, code_chars, family)
    SELECT id, task_id, run_id, step, prompt_kind,
        left(repeat('# ' || luck || E'\\n' || CAST(:program AS text), 6), chars), 'a plan',
        md5(luck::text), state, CASE WHEN is_valid THEN luck ELSE -10 + luck / 2 END,
        CASE WHEN is_valid THEN luck END, true, is_valid,
        CASE WHEN NOT is_valid THEN 'nonzero_exit' END,
        CASE WHEN NOT is_valid THEN 'the program ended with code 1' END, ARRAY[1, 2],
        100 * luck, 100 * luck, 0, 0, 0, 0, 0, 0, 1000000000,
        repeat('epoch ' || luck || ' loss ' || luck || E'\\n', 12), 'a warning', 'static', true,
        'zygote', 'cpu',
        (CAST(:digests AS text[]))[array_position(CAST(:tasks AS text[]), task_id)],
        'paper', 1, chars, (CAST(:families AS text[]))[1 + abs(hashtext(id::text)) % 8]
    FROM drawn
""")
_WORDS = text("SELECT indexdef FROM pg_indexes WHERE indexname = 'ix_solutions_words'")


async def fill(
    engine: AsyncEngine, first: int, last: int, tasks: Sequence[tuple[str, str]], program: str
) -> None:
    """Add solutions with these numbers to tasks, given by id and digest of their data."""
    parameters = {
        "tasks": [task_id for task_id, _ in tasks],
        "digests": [digest for _, digest in tasks],
        "task_count": len(tasks),
        "run_size": STEP_SIZE * RUN_STEPS,
        "step_size": STEP_SIZE,
        "families": list(_FAMILIES),
        "program": program,
    }
    async with engine.connect() as connection:
        # Nobody waits for these jobs, so a million notifications would only slow the inserts.
        # Building the index of words once is much faster than updating it row by row.
        await connection.execute(text("ALTER TABLE jobs DISABLE TRIGGER jobs_are_told"))
        words = (await connection.execute(_WORDS)).scalar_one()
        await connection.execute(text("DROP INDEX ix_solutions_words"))
        for start in range(first, last, _CHUNK):
            bounds = {"first": start, "last": min(start + _CHUNK, last) - 1}
            await connection.execute(_FILL, parameters | bounds)
        await connection.execute(text("ALTER TABLE jobs ENABLE TRIGGER jobs_are_told"))
        await connection.execute(text("SET maintenance_work_mem = '1GB'"))
        await connection.exec_driver_sql(words)
        await connection.execute(text("VACUUM ANALYZE solutions"))
