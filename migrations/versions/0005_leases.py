"""Leases of jobs, fair queueing, and batches."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply this migration."""
    _add_columns()
    # A running job has no worker that could renew a lease: it is queued again.
    op.execute("UPDATE jobs SET state = 'queued', attempt = attempt + 1 WHERE state = 'running'")
    op.create_check_constraint(
        op.f("ck_jobs_running_is_leased"),
        "jobs",
        "(state = 'running') = (lease_until IS NOT NULL)"
        " AND (lease_until IS NULL) = (worker IS NULL)",
    )
    op.drop_index("ix_jobs_unfinished", table_name="jobs")
    op.create_index(
        "ix_jobs_waiting",
        "jobs",
        ["run_id", sa.text("priority DESC"), "created_at", "id"],
        postgresql_where=sa.text("state = 'queued'"),
    )
    op.create_index(
        "ix_jobs_served",
        "jobs",
        ["run_id", "started_at"],
        postgresql_where=sa.text("started_at IS NOT NULL"),
    )
    op.create_index(
        "ix_jobs_leased", "jobs", ["lease_until"], postgresql_where=sa.text("state = 'running'")
    )
    op.create_index(
        op.f("ix_solutions_program_digest_run_id"), "solutions", ["program_digest", "run_id"]
    )
    _tell()
    _create_batches()


def downgrade() -> None:
    """Revert this migration."""
    op.drop_table("batch_items")
    op.drop_table("batches")
    op.execute("DROP TRIGGER jobs_are_told ON jobs")
    op.execute("DROP FUNCTION tell_jobs")
    op.drop_index(op.f("ix_solutions_program_digest_run_id"), table_name="solutions")
    op.drop_index("ix_jobs_leased", table_name="jobs")
    op.drop_index("ix_jobs_served", table_name="jobs")
    op.drop_index("ix_jobs_waiting", table_name="jobs")
    op.create_index(
        "ix_jobs_unfinished",
        "jobs",
        ["created_at"],
        postgresql_where=sa.text("state IN ('queued', 'running')"),
    )
    op.drop_constraint(op.f("ck_jobs_running_is_leased"), "jobs")
    op.drop_column("solutions", "reused_from")
    for name in (
        *("deadline_at", "not_before", "lease_until", "worker", "faults"),
        *("budget_seconds", "client", "priority"),
    ):
        op.drop_column("jobs", name)


def _add_columns() -> None:
    moment = sa.DateTime(timezone=True)
    for column in (
        sa.Column("priority", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("client", sa.Text(), server_default="", nullable=False),
        sa.Column("budget_seconds", sa.Double(), server_default="86400", nullable=False),
        sa.Column("faults", sa.Integer(), server_default="0", nullable=False),
        sa.Column("worker", sa.Uuid(), nullable=True),
        sa.Column("lease_until", moment, nullable=True),
        sa.Column("not_before", moment, server_default=sa.text("now()"), nullable=False),
        sa.Column("deadline_at", moment, nullable=True),
    ):
        op.add_column("jobs", column)
    op.add_column("solutions", sa.Column("reused_from", sa.Uuid(), nullable=True))


def _tell() -> None:
    op.execute("""
        CREATE FUNCTION tell_jobs() RETURNS trigger LANGUAGE plpgsql AS $tell$
        BEGIN
            IF NEW.state = 'queued' THEN
                PERFORM pg_notify('jobs_waiting', '');
            ELSIF NEW.state <> 'running' THEN
                PERFORM pg_notify('jobs_ended', NEW.id::text);
            END IF;
            RETURN NULL;
        END $tell$
    """)
    op.execute("""
        CREATE TRIGGER jobs_are_told AFTER INSERT OR UPDATE OF state ON jobs
        FOR EACH ROW EXECUTE FUNCTION tell_jobs()
    """)


def _create_batches() -> None:
    op.create_table(
        "batches",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("min_complete", sa.Integer(), nullable=False),
        sa.Column("rest", sa.Text(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("closed_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("rest IN ('continue', 'cancel')", name=op.f("ck_batches_rest_is_known")),
        sa.CheckConstraint("min_complete >= 1", name=op.f("ck_batches_min_complete_is_positive")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_batches")),
    )
    op.create_index(
        "ix_batches_open", "batches", ["created_at"], postgresql_where=sa.text("closed_at IS NULL")
    )
    op.create_table(
        "batch_items",
        sa.Column("batch_id", sa.Uuid(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("is_own", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["batch_id"], ["batches.id"], name=op.f("fk_batch_items_batch_id")),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_batch_items_job_id")),
        sa.PrimaryKeyConstraint("batch_id", "place", name=op.f("pk_batch_items")),
    )
    op.create_index(op.f("ix_batch_items_job_id"), "batch_items", ["job_id"])
