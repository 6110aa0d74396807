"""Presets, options, Table 3 and combinations of values, as far as they need no veRL."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from trainer_client.integrations.verl.config_keys import (
    IGNORED_KEYS,
    find_ignored,
    find_misfits,
    find_unknown,
    fits,
    is_known,
)
from trainer_client.integrations.verl.findings import at, flatten
from trainer_client.launch import presets, table3
from trainer_client.launch.__main__ import main, read_options
from trainer_client.launch.combinations import check_combinations
from trainer_client.launch.command import make_command
from trainer_client.launch.presets import LaunchOptions, layer, merge

A100: dict[str, Any] = yaml.safe_load(presets.find("a100x8").read_text())


def whole(**options: Any) -> dict[str, Any]:  # noqa: ANN401 - any option
    """Return the first preset as veRL would compose it, as far as the checks look."""
    tree = merge(A100, layer(LaunchOptions(tasks=("a-task",), **options), A100))
    defaults: dict[str, Any] = {"trainer": {"use_v1": True, "device": "cuda"}, "data": {}}
    tree = merge(defaults, tree)
    tree["actor_rollout_ref"]["rollout"] |= {"prompt_length": 1024, "response_length": 1024}
    tree["critic"]["model"] = dict(tree["critic"]["model"], path="models/Qwen2.5-3B-Instruct/")
    for part in (tree["actor_rollout_ref"]["actor"], tree["critic"]):
        part["optim"] = dict(part["optim"], lr=1e-5)
    return tree


def changed(key: str, value: object, **options: Any) -> list[str]:  # noqa: ANN401 - any option
    tree = copy.deepcopy(whole(**options))
    *above, name = key.split(".")
    node = tree
    for part in above:
        node = node.setdefault(part, {})
    node[name] = value
    findings = check_combinations(tree, {})
    return [finding.key for finding in findings if finding.severity == "error"]


def test_table_3_has_every_line_of_the_paper_once() -> None:
    names = [row.name for row in table3.TABLE3]
    assert len(names) == len(set(names)) == 42
    assert [name for name in names if name.startswith("critic")] == names[28:38]


def test_the_first_preset_is_the_paper_s() -> None:
    compared = table3.compare(whole())
    assert [one.row.name for one in compared if one.is_same is False] == []
    assert [one.row.name for one in compared if one.is_same is None] == ["critic_optimizer"]


@pytest.mark.parametrize(
    ("key", "value", "name"),
    [
        ("data.train_batch_size", 64, "train_batch_size"),
        ("actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu", 8, "actor_ppo_micro_batch_size"),
        ("critic.fsdp.use_dynamic_bsz", True, "critic_ppo_micro_batch_size"),
        ("algorithm.use_kl_in_reward", False, "ppo_kl_coef"),
        ("actor_rollout_ref.actor.clip_ratio_high", 0.28, "actor_clip_ratio"),
        ("actor_rollout_ref.model.path", "Qwen/Qwen2.5-7B-Instruct", "actor_model_type"),
    ],
)
def test_a_difference_to_the_paper_is_seen(key: str, value: object, name: str) -> None:
    tree = copy.deepcopy(whole())
    above, _, last = key.rpartition(".")
    at(tree, above)[last] = value
    compared = {one.row.name: one for one in table3.compare(tree)}
    assert compared[name].is_same is False
    assert name in "".join(table3.explain([compared[name]], {key: "because"}))


def test_without_a_critic_its_lines_differ() -> None:
    tree = merge(whole(), {"algorithm": {"adv_estimator": "grpo"}})
    found = {one.row.name: one.found for one in table3.compare(tree) if one.is_same is False}
    assert found["critic_ppo_epochs"] == "no critic"


def test_the_first_preset_has_no_contradiction() -> None:
    assert check_combinations(whole(), {}) == []
    assert check_combinations(whole(mode="sync"), {}) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("trainer.use_v1", False),
        ("trainer.v1.trainer_mode", "separate_async"),
        ("trainer.v1.colocate_async.num_warmup_batches", 0),
        ("trainer.v1.sampler.max_off_policy_threshold", 0),
        ("algorithm.filter_groups.enable", True),
        ("data.dataloader_num_workers", 8),
        ("data.train_files", "train.parquet"),
        ("data.reward_server", None),
        ("actor_rollout_ref.rollout.prompt_length", 512),
        ("actor_rollout_ref.rollout.max_model_len", 1500),
        ("reward_server.prompts.epoch_rows", 64),
        ("actor_rollout_ref.actor.ppo_mini_batch_size", 100),
        ("critic.fsdp.micro_batch_size_per_gpu", 3),
        ("actor_rollout_ref.rollout.tensor_model_parallel_size", 3),
        ("reward.reward_manager.source", "register"),
        ("reward.num_workers", 0),
        ("trainer.total_training_steps", 101),
        ("trainer.logger", ["console", "paper"]),
        ("ray_kwargs.ray_init.runtime_env.env_vars.REWARD_SERVER_API_KEY", "secret"),
        ("ray_kwargs.ray_init.runtime_env.env_vars.VERL_USE_EXTERNAL_MODULES", "other"),
    ],
)
def test_a_contradiction_is_an_error_that_names_its_key(key: str, value: object) -> None:
    assert changed(key, value) == [key]


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        ("algorithm.use_kl_in_reward", False, "algorithm.kl_ctrl.kl_coef"),
        ("algorithm.adv_estimator", "grpo", "actor_rollout_ref.rollout.n"),
    ],
)
def test_a_contradiction_names_the_key_without_effect(key: str, value: object, named: str) -> None:
    assert changed(key, value) == [named]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("trainer.v1.sampler.custom_sampler.path", "pkg://trainer_client.integrations.verl.buffer"),
        ("trainer.v1.sampler.sync_refill_failed_groups", False),
    ],
)
def test_sync_mode_wants_its_own_sampling(key: str, value: object) -> None:
    assert changed(key, value, mode="sync") == [key]


def test_hints_do_not_keep_a_run_from_starting() -> None:
    tree = merge(whole(loggers=("wandb",)), {"trainer": {"save_freq": -1}})
    found = check_combinations(tree, {"RAY_ADDRESS": "10.0.0.1:6379"})
    assert {finding.severity for finding in found} == {"hint"}
    assert {finding.key for finding in found} == {
        "trainer.save_freq",
        "trainer.logger",
        "ray_kwargs.ray_init.address",
    }
    assert check_combinations(whole(loggers=("wandb",)), {"WANDB_MODE": "offline"}) == []


def test_a_value_of_the_wrong_kind_does_not_hide_the_rest() -> None:
    tree = merge(whole(), {"data": {"train_batch_size": "many", "dataloader_num_workers": 8}})
    found = [finding.key for finding in check_combinations(tree, {})]
    assert "data.dataloader_num_workers" in found


def test_options_change_a_preset() -> None:
    words = "--task a --task b --server http://s:1 --mode sync --loggers console,wandb --steps 300"
    options, _ = read_options(["a=0", *words.split(), "--set", "x.y=1", "z=2"])
    tree = merge(A100, layer(options, A100))
    assert options.overrides == ("x.y=1", "a=0", "z=2")
    assert tree["reward_server"]["tasks"] == ["a", "b"]
    assert tree["reward_server"]["url"] == "http://s:1"
    assert tree["reward_server"]["run_id"] == "a+1-a100x8"
    assert tree["reward_server"]["prompts"]["improve_fraction"] == 0.5
    assert tree["trainer"]["logger"] == ["console", "wandb"]
    assert (tree["trainer"]["total_training_steps"], tree["trainer"]["total_epochs"]) == (300, 300)
    assert tree["trainer"]["v1"]["sampler"]["custom_sampler"] == {"path": None, "name": None}
    assert tree["trainer"]["resume_mode"] == "auto"


def test_a_fresh_run_does_not_resume() -> None:
    tree = merge(A100, layer(LaunchOptions(tasks=("a",), is_fresh=True), A100))
    assert tree["trainer"]["resume_mode"] == "disable"


def test_what_a_preset_says_about_its_server_is_kept() -> None:
    own = {"reward_server": {"url": "http://own:1", "tasks": ["mine"], "run_id": "mine-1"}}
    said = layer(LaunchOptions(), own)["reward_server"]
    assert said == {"url": "http://own:1", "tasks": ["mine"], "run_id": "mine-1"}


def test_an_unknown_preset_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="a100x8, cpu, small_gpu, or a file"):
        presets.find("h100")
    with pytest.raises(SystemExit) as left:
        main(["--resume", "--fresh"])
    assert left.value.code == 2
    assert "not allowed with" in capsys.readouterr().err


def test_ignored_keys_are_errors_unless_set_to_the_same_value() -> None:
    assert len({dead.key for dead in IGNORED_KEYS}) == len(IGNORED_KEYS)
    asked = {"critic.grad_clip": 0.5, "critic.optim.clip_grad": 1.0}
    assert [finding.key for finding in find_ignored(asked)] == ["critic.grad_clip"]
    assert list(find_ignored({**asked, "critic.optim.clip_grad": 0.5})) == []
    assert list(find_ignored({"data.gen_batch_size": None})) == []
    assert list(find_ignored({"data.prompt_key": "question"})) == []
    ours = {"data.prompt_key": "question", "data.custom_cls.name": "TaskDataset"}
    assert [finding.key for finding in find_ignored(ours)] == ["data.prompt_key"]
    for file in presets.names():
        tree = yaml.safe_load(presets.find(file).read_text())
        assert list(find_ignored(flatten(tree))) == []


BASE = {"a": {"b": 1, "open": {}, "text": "x", "ref": "${a.b}", "none": None}, "ray_kwargs": {}}


@pytest.mark.parametrize("key", ["a.b", "a.open.any.thing", "a.none", "reward_server.x.y"])
def test_a_key_is_known(key: str) -> None:
    assert is_known(BASE, key)


@pytest.mark.parametrize("key", ["a.c", "a.b.c", "c", "a.none.c"])
def test_a_key_is_unknown(key: str) -> None:
    assert not is_known(BASE, key)


def test_an_unknown_key_comes_with_the_nearest() -> None:
    [found] = find_unknown(BASE, {"a.txt": 1})
    assert str(found) == "a.txt: veRL has no such key; the nearest is a.text"


def test_values_are_checked_against_the_type_of_the_default() -> None:
    said = {"a.b": 1.5, "a.text": "y", "a.ref": 7, "a.none": 7, "a.open.any": 7}
    assert [finding.key for finding in find_misfits(BASE, said)] == ["a.b"]


@pytest.mark.parametrize(
    ("value", "expected", "is_fit"),
    [
        (1, int, True),
        (True, int, False),
        (1, float, True),
        (1, bool, False),
        ("1", int, False),
        (None, int | None, True),
        (None, int, False),
        ([1], list[int], True),
        ([1], tuple[int, int], True),
        (1, list[int], False),
        ({}, dict[str, int], True),
        (object(), object, True),
    ],
)
def test_kinds_of_values(value: object, expected: object, is_fit: bool) -> None:  # noqa: FBT001
    assert fits(value, expected) is is_fit


def test_a_command_carries_what_ray_s_processes_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERL_USE_EXTERNAL_MODULES", "mine")
    monkeypatch.setenv("REWARD_SERVER_API_KEY", "the-secret-of-the-server")
    command = make_command(whole(), ("trainer.nnodes=1", "x='a b'"))
    assert (
        command.additions["VERL_USE_EXTERNAL_MODULES"]
        == "mine,trainer_client.integrations.verl.plugin"
    )
    assert command.environment()["REWARD_SERVER_API_KEY"] == "the-secret-of-the-server"
    shown = "\n".join(command.show())
    assert "the-secret-of-the-server" not in shown
    assert shown.endswith("""'x='"'"'a b'"'"''""")
