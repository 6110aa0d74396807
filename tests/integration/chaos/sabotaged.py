"""The command line without fencing and unique keys, for the checker to detect."""

from __future__ import annotations

from sqlalchemy import TextClause, text

from reward_server.cli.app import main
from reward_server.store import job_statements, queue_statements

_FENCE = "AND attempt = :attempt AND state = 'running'"
# Constraints of the database that would prevent the same damage.
CONSTRAINTS = (
    "ALTER TABLE solutions DROP CONSTRAINT uq_solutions_job_id",
    "ALTER TABLE jobs DROP CONSTRAINT uq_jobs_idempotency_key",
)


def _without(statement: TextClause, begin: str, end: str = "") -> TextClause:
    before, found, after = str(statement).partition(begin)
    assert found, f"{begin!r} is no longer in the statement"
    assert end in after
    return text(before + (end + after.partition(end)[2] if end else after))


def take_out_fencing() -> None:
    """Let every attempt write, whoever holds the lease."""
    job_statements.RECORD = _without(job_statements.RECORD, _FENCE)
    queue_statements.RETRY = _without(queue_statements.RETRY, _FENCE)
    queue_statements.FAIL = _without(queue_statements.FAIL, _FENCE)


def take_out_keys() -> None:
    """Accept every request as a new job."""
    job_statements.ACCEPT = _without(job_statements.ACCEPT, "ON CONFLICT", "RETURNING")


if __name__ == "__main__":
    take_out_fencing()
    take_out_keys()
    main()
