"""Jobs and the solutions they end in."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply this migration."""
    op.create_table(
        "jobs",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=True),
        sa.Column("body_digest", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("completion", sa.Text(), nullable=True),
        sa.Column("code", sa.Text(), nullable=True),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=True),
        sa.Column("sample_id", sa.Text(), nullable=True),
        sa.Column("parent_id", sa.Uuid(), nullable=True),
        sa.Column("prompt_kind", sa.Text(), nullable=False),
        sa.Column("wall_seconds", sa.Double(), nullable=True),
        sa.Column("state", sa.Text(), server_default="queued", nullable=False),
        sa.Column("attempt", sa.Integer(), server_default="1", nullable=False),
        sa.Column("error_kind", sa.Text(), nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "(state = 'errored') = (error_kind IS NOT NULL)", name=op.f("ck_jobs_errored_has_kind")
        ),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'scored', 'failed', 'errored', 'cancelled')",
            name=op.f("ck_jobs_state_is_known"),
        ),
        sa.CheckConstraint(
            "(completion IS NULL) <> (code IS NULL)", name=op.f("ck_jobs_one_source")
        ),
        sa.CheckConstraint("attempt >= 1", name=op.f("ck_jobs_attempt_is_positive")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
        sa.UniqueConstraint("idempotency_key", name=op.f("uq_jobs_idempotency_key")),
    )
    op.create_index(
        "ix_jobs_unfinished",
        "jobs",
        ["created_at"],
        unique=False,
        postgresql_where=sa.text("state IN ('queued', 'running')"),
    )
    op.create_table(
        "solutions",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=True),
        sa.Column("sample_id", sa.Text(), nullable=True),
        sa.Column("parent_id", sa.Uuid(), nullable=True),
        sa.Column("prompt_kind", sa.Text(), nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("plan", sa.Text(), nullable=False),
        sa.Column("program_digest", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("reward", sa.Double(), nullable=False),
        sa.Column("score", sa.Double(), nullable=True),
        sa.Column("higher_is_better", sa.Boolean(), nullable=False),
        sa.Column("valid", sa.Boolean(), nullable=False),
        sa.Column("error_kind", sa.Text(), nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("milestones", sa.ARRAY(sa.SmallInteger()), nullable=False),
        sa.Column("duration_seconds", sa.Double(), nullable=False),
        sa.Column("cpu_seconds", sa.Double(), nullable=False),
        sa.Column("queue_seconds", sa.Double(), nullable=False),
        sa.Column("instrument_seconds", sa.Double(), nullable=False),
        sa.Column("boot_seconds", sa.Double(), nullable=False),
        sa.Column("execute_seconds", sa.Double(), nullable=False),
        sa.Column("grade_seconds", sa.Double(), nullable=False),
        sa.Column("total_seconds", sa.Double(), nullable=False),
        sa.Column("peak_memory_bytes", sa.BigInteger(), nullable=False),
        sa.Column("stdout_tail", sa.Text(), nullable=False),
        sa.Column("stderr_tail", sa.Text(), nullable=False),
        sa.Column("instrumentation_kind", sa.Text(), nullable=False),
        sa.Column("instrumentation_model", sa.Text(), nullable=True),
        sa.Column("instrumentation_verified", sa.Boolean(), nullable=False),
        sa.Column("instrumentation_reason", sa.Text(), nullable=True),
        sa.Column("sandbox_kind", sa.Text(), nullable=False),
        sa.Column("sandbox_image", sa.Text(), nullable=False),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("data_digest", sa.Text(), nullable=False),
        sa.Column("scheme", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("medal", sa.Text(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "duration_seconds > '-Infinity' AND duration_seconds < 'Infinity'",
            name=op.f("ck_solutions_duration_seconds_is_finite"),
        ),
        sa.CheckConstraint(
            "reward > '-Infinity' AND reward < 'Infinity'",
            name=op.f("ck_solutions_reward_is_finite"),
        ),
        sa.CheckConstraint(
            "score > '-Infinity' AND score < 'Infinity'", name=op.f("ck_solutions_score_is_finite")
        ),
        sa.CheckConstraint(
            "status IN ('scored', 'failed')", name=op.f("ck_solutions_status_is_known")
        ),
        sa.CheckConstraint(
            "valid = (status = 'scored')", name=op.f("ck_solutions_valid_is_scored")
        ),
        sa.CheckConstraint(
            "(error_kind IS NULL) = (error_message IS NULL)",
            name=op.f("ck_solutions_kind_has_message"),
        ),
        sa.CheckConstraint(
            "(error_kind IS NULL) = valid", name=op.f("ck_solutions_invalid_has_kind")
        ),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_solutions_job_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_solutions")),
        sa.UniqueConstraint("job_id", name=op.f("uq_solutions_job_id")),
    )
    op.create_index(
        op.f("ix_solutions_created_at_id"), "solutions", ["created_at", "id"], unique=False
    )
    op.create_index(
        op.f("ix_solutions_duration_seconds_id"),
        "solutions",
        ["duration_seconds", "id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_solutions_parent_id"),
        "solutions",
        ["parent_id"],
        unique=False,
        postgresql_where=sa.text("parent_id IS NOT NULL"),
    )
    op.create_index(op.f("ix_solutions_reward_id"), "solutions", ["reward", "id"], unique=False)
    op.create_index(
        op.f("ix_solutions_run_id_created_at_id"),
        "solutions",
        ["run_id", "created_at", "id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_solutions_task_id_reward_id"),
        "solutions",
        ["task_id", "reward", "id"],
        unique=False,
    )


def downgrade() -> None:
    """Revert this migration."""
    op.drop_table("solutions")
    op.drop_table("jobs")
