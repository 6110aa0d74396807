"""A field of an answer is defined once: rows and response models follow the dataclasses."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel

from reward_server.api.schemas.derived import publishes
from reward_server.store.rows import solution_parameters
from reward_server.store.tables import solutions
from tests.conftest import ROOT
from tests.integration.store.examples import verdict

FROM_JOB = {"task_id", "run_id", "step", "sample_id", "parent_id", "prompt_kind", "attempt"}
MADE_BY_THE_STORE = {"id", "job_id", "created_at"}


def test_every_column_of_solutions_has_a_source() -> None:
    columns = {column.name for column in solutions.c}
    assert solution_parameters(verdict()).keys() == columns - FROM_JOB - MADE_BY_THE_STORE


def test_a_measured_field_is_named_in_the_model_and_the_table_only() -> None:
    folders = ("api", "bootstrap", "cli", "jobs", "prompts", "store")
    files = [ROOT / "reward_server" / "model.py", ROOT / "reward_server" / "pipeline.py"]
    for folder in folders:
        files += (ROOT / "reward_server" / folder).rglob("*.py")
    naming = {path.name for path in files if "peak_memory_bytes" in path.read_text()}
    assert naming == {"model.py", "tables.py"}


def test_a_model_gets_the_fields_that_it_does_not_declare() -> None:
    @dataclass(frozen=True)
    class Source:
        kept: int
        renamed: float
        hidden: bytes
        new: str | None

    @publishes(Source, without=frozenset({"hidden"}), new=str)
    class Published(BaseModel):
        """A published source."""

        renamed: str

    assert {name: one.annotation for name, one in Published.model_fields.items()} == {
        "renamed": str,
        "kept": int,
        "new": str,
    }
    assert Published.model_json_schema()["required"] == ["renamed", "kept", "new"]
    assert Published.model_json_schema()["description"] == "A published source."
