"""Every attack we know of has a case, a named test elsewhere, or a named residual risk."""

from __future__ import annotations

import pytest
from cases import HERE, load_cases

ROOT = HERE.parent.parent
KNOWN = {
    "RES": (1, 2, 4, 5, 7, 8, 10, 11, 13, 16),
    "FS": (1, 2, 4, 5, 7, 8, 10, 11, 13),
    "NET": (1, 2, 4, 5, 7, 8),
    "PROC": (1, 2, 4, 5, 7, 8, 10),
    "ESC": (1, 2, 4, 5, 7, 8),
    "LEAK": (1, 2, 4, 5, 7, 8, 10, 11),
}
# Faults from outside, and what is no program: the file and what stands in it.
ELSEWHERE = {
    "FS-13": (
        "tests/sandbox/test_docker_settings.py",
        "def test_a_container_is_sent_a_plain_archive",
    ),
    "PROC-10": (
        "tests/contract/test_sandbox_slots.py",
        "def test_a_cancelled_program_is_dead_and_its_slot_free",
    ),
    "ESC-02": (
        "tests/contract/test_docker_posture.py",
        "def test_a_runc_that_programs_can_leave_is_refused_at_the_start",
    ),
    "ESC-07": (
        "tests/contract/test_docker_posture.py",
        "def test_the_engine_makes_what_the_table_says",
    ),
    "ESC-08": ("SECURITY.md", "**The kernel is shared.**"),
    "LEAK-05": ("SECURITY.md", "**Scores are an oracle.**"),
    "LEAK-07": ("tests/tasks/test_preparation.py", "def test_damage_is_found"),
    "LEAK-08": (
        "tests/api/test_score_contract.py",
        "def test_unknown_paths_and_methods_are_problem_documents",
    ),
    "LEAK-10": (
        "tests/instrument/test_lm_instrumenter.py",
        "def test_the_prompt_is_this_text_and_the_program",
    ),
    "LEAK-11": (
        "tests/contract/test_docker_images.py",
        "def test_the_image_of_the_boxes_holds_nothing_private",
    ),
}
IDS = [f"{group}-{number:02}" for group, numbers in KNOWN.items() for number in numbers]


@pytest.mark.parametrize("name", IDS)
def test_a_known_attack_is_covered(name: str) -> None:
    if name in ELSEWHERE:
        file, text = ELSEWHERE[name]
        assert text in (ROOT / file).read_text()
    else:
        assert name in {case.id for case in load_cases(everything=True)}


def test_every_case_has_an_id_of_its_own() -> None:
    ids = [case.id for case in load_cases(everything=True)]
    assert len(set(ids)) == len(ids)
