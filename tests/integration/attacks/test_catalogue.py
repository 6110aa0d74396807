"""Every attack we know of has a case, a named test elsewhere, or a named residual risk."""

from __future__ import annotations

import pytest

from tests.integration.attacks.cases import HERE, load_cases

ROOT = HERE.parents[2]
KNOWN = {
    "RES": (1, 2, 4, 5, 7, 8, 10, 11, 13, 16),
    "FS": (1, 2, 4, 5, 7, 8, 10, 11, 13),
    "NET": (1, 2, 4, 5, 7, 8),
    "PROC": (1, 2, 4, 5, 7, 8, 10),
    "ESC": (1, 2, 4, 5, 7, 8),
    "LEAK": (1, 2, 4, 5, 7, 8, 10, 11),
    "REQ": (1, 2, 4, 5, 7, 8, 10, 11),
    "LOAD": (1, 2, 4, 5, 7, 8),
    "CRASH": (1, 2, 4, 5, 7, 8, 10, 11, 13, 14),
}
# Faults from outside, and what is no program: the file and what stands in it.
ELSEWHERE = {
    "FS-13": (
        "tests/unit/sandbox/test_docker_settings.py",
        "def test_a_container_is_sent_a_plain_archive",
    ),
    "PROC-10": (
        "tests/integration/contract/test_sandbox_slots.py",
        "def test_a_cancelled_program_is_dead_and_its_slot_free",
    ),
    "ESC-02": (
        "tests/integration/contract/docker/test_docker_posture.py",
        "def test_a_runc_that_programs_can_leave_is_refused_at_the_start",
    ),
    "ESC-07": (
        "tests/integration/contract/docker/test_docker_posture.py",
        "def test_the_engine_makes_what_the_table_says",
    ),
    "ESC-08": ("SECURITY.md", "**The kernel is shared.**"),
    "LEAK-05": ("SECURITY.md", "**Scores are an oracle.**"),
    "LEAK-07": ("tests/integration/tasks/test_preparation.py", "def test_damage_is_found"),
    "LEAK-08": (
        "tests/integration/api/contract/test_score_contract.py",
        "def test_unknown_paths_and_methods_are_problem_documents",
    ),
    "LEAK-10": (
        "tests/unit/instrument/test_lm_attacks.py",
        "def test_the_prompt_is_this_text_and_the_program",
    ),
    "LEAK-11": (
        "tests/integration/contract/docker/test_docker_images.py",
        "def test_the_image_of_the_boxes_holds_nothing_private",
    ),
    "REQ-01": (
        "tests/integration/api/contract/test_malformed_requests.py",
        "def test_a_malformed_body_is_an_invalid_request",
    ),
    "REQ-02": (
        "tests/integration/api/contract/test_score_contract.py",
        "def test_a_large_chunked_body_is_refused_while_it_is_read",
    ),
    "REQ-04": (
        "tests/integration/api/contract/test_score_contract.py",
        "def test_an_unknown_task_is_not_found",
    ),
    "REQ-05": (
        "tests/integration/api/contract/test_score_contract.py",
        "def test_a_field_out_of_bounds_is_refused_and_leaves_no_job",
    ),
    "REQ-07": (
        "tests/integration/api/contract/test_score_contract.py",
        "def test_a_text_that_python_cannot_take_is_a_syntax_error",
    ),
    "REQ-08": (
        "tests/integration/api/contract/test_malformed_requests.py",
        "def test_any_body_gets_an_answer_or_a_problem",
    ),
    "REQ-10": (
        "tests/integration/api/contract/test_score_contract.py",
        "def test_a_key_with_another_body_is_a_conflict_and_runs_nothing",
    ),
    "REQ-11": (
        "tests/integration/api/contract/test_score_contract.py",
        '"a callback": {"callback_url"',
    ),
    "LOAD-01": (
        "tests/integration/api/test_operation.py",
        "def test_a_full_queue_says_when_to_retry",
    ),
    "LOAD-02": (
        "tests/integration/store/test_waiting.py",
        "def test_waiting_clients_hold_no_connection_and_share_one_query",
    ),
    "LOAD-04": (
        "tests/integration/api/test_job_routes.py",
        "def test_a_run_with_many_jobs_does_not_starve_one_with_few",
    ),
    "LOAD-05": (
        "tests/unit/sandbox/test_docker_settings.py",
        "def test_there_are_no_more_slots_than_devices",
    ),
    "LOAD-07": (
        "tests/integration/contract/docker/test_docker_faults.py",
        "def test_an_engine_that_hangs_or_dies_is_our_fault",
    ),
    "LOAD-08": (
        "tests/integration/store/test_queue.py",
        "def test_all_attempts_of_a_job_share_one_deadline",
    ),
    "CRASH-01": (
        "tests/integration/api/test_operation.py",
        "def test_a_restarted_server_finishes_its_jobs",
    ),
    "CRASH-02": (
        "tests/integration/api/test_processes.py",
        "def test_another_worker_runs_the_jobs_of_a_killed_one",
    ),
    "CRASH-04": (
        "tests/integration/api/test_processes.py",
        "def test_a_death_between_grading_and_storing_costs_one_attempt",
    ),
    "CRASH-05": (
        "tests/integration/chaos/test_chaos.py",
        "def test_no_fault_loses_doubles_or_mixes_up_jobs",
    ),
    "CRASH-07": (
        "tests/integration/api/test_processes.py",
        "def test_no_job_is_accepted_that_cannot_be_stored",
    ),
    "CRASH-08": (
        "tests/integration/contract/docker/test_docker_faults.py",
        "def test_an_engine_that_hangs_or_dies_is_our_fault",
    ),
    "CRASH-10": (
        "tests/integration/api/test_stopping.py",
        "def test_a_draining_server_refuses_jobs_and_finishes_running_ones",
    ),
    "CRASH-11": (
        "tests/integration/api/contract/test_score_contract.py",
        "def test_a_job_survives_its_client_which_finds_it_by_key",
    ),
    "CRASH-13": (
        "tests/integration/api/test_processes.py",
        "def test_a_wrong_clock_of_a_worker_changes_nothing",
    ),
    "CRASH-14": (
        "tests/integration/store/test_schema.py",
        "def test_an_older_server_runs_on_during_a_migration",
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
