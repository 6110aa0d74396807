"""Every preset, and what is wrong with others, judged by the veRL that is installed."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from verl.utils.config import omega_conf_to_dataclass

from trainer_client.integrations.verl import configuration
from trainer_client.integrations.verl.config_keys import IGNORED_KEYS
from trainer_client.integrations.verl.configuration import (
    compose_run,
    format_override,
    read_overrides,
    read_preset,
)
from trainer_client.integrations.verl.findings import at, flatten
from trainer_client.launch import presets, table3
from trainer_client.launch.__main__ import compose, main
from trainer_client.launch.preflight import check_environment
from trainer_client.launch.presets import LaunchOptions

TASK = "spooky-author-identification"
VERL = importlib.util.find_spec("verl")
assert VERL is not None
assert VERL.origin is not None
SOURCES = Path(VERL.origin).parent
# What is not part of the V1 trainer, or only declares keys.
ELSEWHERE = re.compile(
    r"/(config|experimental/(separation|fully_async_policy|one_step_off_policy))/"
    r"|main_ppo_v0|ppo/ray_trainer\.py|hf_rollout\.py|/(megatron|veomni|torchtitan|automodel)/"
)


def errors(*overrides: str, **options: Any) -> list[str]:
    composed = compose(LaunchOptions(tasks=(TASK,), overrides=overrides, **options))
    return [str(one) for one in composed.findings if one.severity == "error"]


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = main(["--task", TASK, *words])
    return code, capsys.readouterr().out


@pytest.mark.parametrize("preset", presets.names())
@pytest.mark.parametrize("mode", [None, "sync", "colocate_async"])
def test_every_preset_is_valid_in_every_mode(preset: str, mode: str | None) -> None:
    assert errors(preset=preset, mode=mode) == []


def test_a_dry_run_shows_the_table_and_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    code, shown = run(capsys, "--dry-run")
    assert code == 0
    assert "41 of 41 values are those of the paper" in shown
    assert "-m verl.trainer.main_ppo" in shown
    assert "VERL_USE_EXTERNAL_MODULES=trainer_client.integrations.verl.plugin" in shown
    assert "DIFFERS" not in shown


@pytest.mark.parametrize("preset", ["small_gpu", "cpu"])
def test_each_difference_to_the_paper_has_a_reason(
    preset: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, shown = run(capsys, "--dry-run", "--preset", preset)
    assert code == 0
    assert "DIFFERS" in shown
    assert "gives no reason" not in shown


def test_a_difference_by_the_command_line_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, shown = run(capsys, "--dry-run", "actor_rollout_ref.actor.ppo_epochs=4", "--steps", "200")
    assert code == 0
    assert "actor_ppo_epochs: 4 instead of 100: asked for on the command line" in shown
    assert "total_epochs: 200 instead of 100: asked for on the command line" in shown


def test_all_errors_are_reported_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    code, shown = run(
        capsys,
        "--dry-run",
        "trainer.nodes=2",
        "custom_reward_function.path=mine.py",
        "actor_rollout_ref.actor.ppo_epochs=many",
        "data.dataloader_num_workers=8",
        "--set",
        "reward_server.durations.clock=sun",
    )
    assert code == 2
    assert "ERROR  trainer.nodes: veRL has no such key; the nearest is trainer.nnodes" in shown
    assert "ERROR  custom_reward_function.path: veRL takes this and ignores it" in shown
    assert "ERROR  actor_rollout_ref.actor.ppo_epochs: 'many' is not a whole number" in shown
    assert "ERROR  data.dataloader_num_workers: must be 0" in shown
    assert "ERROR  reward_server.durations.clock: " in shown
    assert "5 problems; nothing was started" in shown


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("critic.model.fsdp_config.param_offload=true", "the nearest is critic.fsdp.param_offload"),
        ("+actor_rollout_ref.actor.optim.rate=1", "veRL has no such key"),
        ("trainer.v1=3", "this is a group of keys"),
        ("data.train_batch_size=128.5", "is not a whole number"),
        ("actor_rollout_ref.model.enable_gradient_checkpointing=1", "is not true or false"),
        ("critic.optim.betas=0.9", "is not a list"),
        ("actor_rollout_ref.actor.loss_agg_mode=mean", "Invalid loss_agg_mode"),
        ("actor_rollout_ref.rollout.mode=sync", "has been removed"),
        ("data.reward_server={url: elsewhere}", "must say the same as reward_server"),
        ("actor_rollout_ref.actor.grad_clip=0.5", "write actor_rollout_ref.actor.optim.clip_grad"),
        ("actor_rollout_ref.actor.clip_ratio=0.3", "clip_ratio_low and clip_ratio_high"),
        ("critic.forward_micro_batch_size=8", "critic.fsdp.infer_micro_batch_size_per_gpu"),
        ("actor_rollout_ref.rollout.over_sample_rate=0.5", "num_warmup_batches"),
        ("reward.custom_reward_function.path=mine.py", "rewards come from RewardServerManager"),
    ],
)
def test_what_veRL_would_take_or_hide_is_an_error(override: str, expected: str) -> None:  # noqa: N802
    first, *_ = errors(override)  # others may follow from it
    assert expected in first
    assert override.lstrip("+").partition("=")[0].partition(".")[0] in first or "veRL" in first


def test_twins_of_the_same_value_are_no_error() -> None:
    words = ("actor.clip_ratio=0.3", "actor.clip_ratio_low=0.3", "actor.clip_ratio_high=0.3")
    assert errors(*(f"actor_rollout_ref.{word}" for word in words)) == []


def test_fields_of_dataclasses_and_open_nodes_are_known() -> None:
    words = (
        "critic.ppo_infer_max_token_len_per_gpu=4096",
        "actor_rollout_ref.model.override_config.rope_theta=1e6",
        "actor_rollout_ref.rollout.engine_kwargs.vllm.max_num_batched_tokens=4096",
        "actor_rollout_ref.actor.optim.betas=[0.9,0.95]",
        "ray_kwargs.ray_init.num_cpus=96",
        "trainer.v1.colocate_async.num_warmup_batches=0.5",
    )
    assert errors(*words) == []


def test_ignored_keys_exist_and_nothing_reads_them() -> None:
    base = flatten(configuration.known_tree())
    files = [file for file in SOURCES.rglob("*.py") if not ELSEWHERE.search(str(file))]
    texts = "\n".join(file.read_text() for file in files)
    names = [
        *("grad_clip", "over_sample_rate", "forward_micro_batch_size", "multi_stage_wake_up"),
        *("nccl_timeout", "use_pf_ppo", "esi_redundant_time", "num_repeat_rollouts"),
        *("forward_max_token_len_per_gpu", "freeze_vision_tower", "warmup_style"),
    ]
    for name in names:
        assert not re.search(rf"\b{name}\b", texts), name
    for ignored in IGNORED_KEYS:
        assert any(ignored.covers(key) for key in base), ignored.key


def test_the_critic_reads_its_sizes_below_fsdp_alone() -> None:
    requested = flatten(read_preset(presets.find("a100x8")))
    requested = {key: one for key, one in requested.items() if not key.startswith("critic.fsdp")}
    words = [format_override(key, one, is_new=True) for key, one in requested.items()]
    words = [f"+{word}" for word in words]
    config = configuration._compose(words)
    config.critic.model = None
    critic = omega_conf_to_dataclass(config.critic)
    assert critic.ppo_micro_batch_size_per_gpu == 1
    assert critic.engine.use_dynamic_bsz is True
    assert critic.engine.micro_batch_size_per_gpu is None


@pytest.mark.parametrize("text", ["it's", 'say "x"', "a\\", "\\'", "true", "1e-5", "a=b, c", ""])
def test_any_text_reaches_veRL_as_it_is(text: str) -> None:  # noqa: N802
    config = configuration._compose([format_override("trainer.project_name", text, is_new=False)])
    assert config.trainer.project_name == text


def test_nested_values_reach_veRL_as_they_are() -> None:  # noqa: N802
    value = {"a": [1, 2.5, None, True, "x y"], "b": {}}
    config = configuration._compose([format_override("reward_server", value, is_new=True)])
    assert configuration._plain(config.reward_server, resolve=True) == value


def test_overrides_are_read_like_a_preset() -> None:
    words = ["a.b=1e-5", "+a.c=[1,2]", "++d=null", "e=x=y"]
    assert read_overrides(words) == {"a": {"b": 1e-5, "c": [1, 2]}, "d": None, "e": "x=y"}
    for word in ("alone", "~a", "=1"):
        with pytest.raises(ValueError, match="is not KEY=VALUE"):
            read_overrides([word])


def test_a_duplicate_key_in_a_preset_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "twice.yaml").write_text("trainer: {nnodes: 1}\ntrainer: {nnodes: 2}\n")
    with pytest.raises(ValueError, match="duplicate key"):
        read_preset(tmp_path / "twice.yaml")


def test_table_3_is_compared_key_by_key() -> None:
    requested = flatten(read_preset(presets.find("a100x8")))
    server = {"reward_server.url": "http://a", "reward_server.tasks": [TASK]}
    composed = compose_run({**requested, **server, "reward_server.run_id": "r"})
    assert composed.findings == ()
    missing = object()
    for row in table3.TABLE3:
        assert all(at(composed.tree, key, missing) is not missing for key in row.keys)
        assert set(row.keys) <= set(requested), f"the preset leaves {row.name} to veRL"


def test_a_missing_task_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--dry-run"]) == 2
    assert "reward_server.tasks: Field required" in capsys.readouterr().out


def test_the_key_is_not_in_what_is_logged(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("REWARD_SERVER_API_KEY", "a-secret-of-the-server")
    code, shown = run(capsys, "--dry-run")
    assert code == 0
    assert "a-secret-of-the-server" not in shown


def test_a_plug_in_that_veRL_did_not_load_is_not_active() -> None:  # noqa: N802
    found = {"VERL_USE_EXTERNAL_MODULES": "json", "PYTHONPATH": ":".join(sys.path)}
    composed = compose(LaunchOptions(preset="cpu", tasks=(TASK,)))
    checks = {check.name: check for check in check_environment(composed.tree, found)}
    assert checks["veRL"].state == "ok"
    assert checks["plug-in"].state == "problem"
    assert "VERL_USE_EXTERNAL_MODULES" in checks["plug-in"].text


@pytest.mark.parametrize("mode", ["sync", "colocate_async"])
def test_a_preset_may_be_changed_to_grpo_and_to_no_weighing(mode: str) -> None:
    words = ["algorithm.adv_estimator=grpo", "actor_rollout_ref.rollout.n=2"]
    words += ["reward_server.durations.enabled=false", "trainer.default_local_dir=/elsewhere"]
    words += ["ray_kwargs.ray_init.runtime_env.env_vars.VERL_USE_EXTERNAL_MODULES='a,b'"]
    assert errors(*words, preset="cpu", mode=mode, steps=5) == []
