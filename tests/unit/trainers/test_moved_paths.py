"""Import paths that earlier documentation named."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
import warnings
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

import trainer_client
from trainer_client import moved
from trainer_client.launch.combinations import check_combinations

if TYPE_CHECKING:
    from collections.abc import Iterator

# Without veRL, TRL, verifiers, SkyRL and AReaL these can be imported.
IMPORTABLE = {
    "answers": "client.answers",
    "async_client": "client.asynchronous",
    "errors": "client.errors",
    "options": "client.options",
    "submissions": "client.submissions",
    "slime": "integrations.slime",
    "trl": "integrations.trl",
    "trl.reward": "integrations.trl.reward",
    "verl": "integrations.verl",
    "verl.findings": "integrations.verl.findings",
    "verl.reward": "integrations.verl.reward",
    "verl.dead_keys": "integrations.verl.config_keys",
    "evaluate.drawing": "evaluate.endpoint",
    "lab.space": "lab.program_space",
    "launch.running": "launch.command",
}
TRAINERS = {
    "areal": "integrations.areal",
    "areal_durations": "integrations.areal_durations",
    "skyrl": "integrations.skyrl",
    "trl.rows": "integrations.trl.rows",
    "trl.trainer": "integrations.trl.trainer",
    "verifiers": "integrations.verifiers",
    "verl.buffer": "integrations.verl.buffer",
    "verl.cpu": "integrations.verl.cpu",
    "verl.dataset": "integrations.verl.dataset",
    "verl.manager": "integrations.verl.manager",
    "verl.phrases": "integrations.verl.phrases",
    "verl.plugin": "integrations.verl.plugin",
}
UNCHANGED = ("durations", "measures", "prompting", "run", "settings")


def path(name: str) -> str:
    return f"trainer_client.{name}"


@pytest.fixture
def forgotten() -> Iterator[None]:
    """Forget old names before and after, so that importing one is the first time."""

    def forget() -> None:
        for name in [name for name in sys.modules if moved.current_path(name) != name]:
            del sys.modules[name]

    forget()
    yield
    forget()


@pytest.mark.usefixtures("forgotten")
@pytest.mark.parametrize(("old", "new"), IMPORTABLE.items())
def test_an_old_path_is_the_same_module_and_names_the_new_one(old: str, new: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        module = importlib.import_module(path(old))
    assert {one.category for one in caught} == {DeprecationWarning}
    assert f"{path(old)} has moved to {path(new)}:" in str(caught[-1].message)
    assert module is importlib.import_module(path(new))
    assert module.__name__ == path(new)
    assert module.__spec__ is not None
    assert module.__spec__.name == path(new)


@pytest.mark.usefixtures("forgotten")
@pytest.mark.parametrize(("old", "new"), TRAINERS.items())
def test_modules_that_need_a_trainer_are_loaded_once_too(
    old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in = ModuleType(path(new))
    stand_in.__spec__ = importlib.machinery.ModuleSpec(path(new), None)
    monkeypatch.setitem(sys.modules, path(new), stand_in)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert importlib.import_module(path(old)) is stand_in


@pytest.mark.parametrize("name", UNCHANGED)
def test_paths_that_did_not_move_do_not_warn(name: str) -> None:
    assert importlib.import_module(path(name)).__name__ == path(name)


def test_a_module_that_registers_something_runs_once() -> None:
    script = """
import sys, types, warnings
warnings.simplefilter("ignore")
class Trainer: pass
registry = {"sync": None, "colocate_async": None}
stubs = {
    "torch": {"Tensor": object}, "transfer_queue": {}, "tensordict": {"TensorDict": object},
    "verl": {}, "verl.trainer": {}, "verl.trainer.ppo": {}, "verl.trainer.ppo.v1": {},
    "verl.trainer.ppo.v1.trainer_base": {"TRAINER_REGISTRY": registry},
    "verl.trainer.ppo.v1.trainer_colocate_async": {"PPOTrainerColocateAsync": Trainer},
    "verl.trainer.ppo.v1.trainer_sync": {"PPOTrainerSync": Trainer},
}
for name, content in stubs.items():
    sys.modules[name] = module = types.ModuleType(name)
    module.__dict__.update(content)
import trainer_client.verl.plugin as old
first = registry["sync"]
import trainer_client.integrations.verl.plugin as new
assert old is new and registry["sync"] is first is new.DurationAwareSync
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_an_old_path_can_be_run_as_a_command() -> None:
    words = ["-W", "ignore", "-m", "trainer_client.evaluate.drawing"]
    subprocess.run([sys.executable, *words], check=True)


@pytest.mark.usefixtures("forgotten")
def test_what_is_not_there_is_named_by_its_new_path() -> None:
    name = r"integrations\.verl\.nothing"
    importlib.import_module(path("integrations.verl"))
    sys.modules["trainer_client.verl"] = sys.modules[path("integrations.verl")]
    with pytest.raises(ModuleNotFoundError, match=name):
        importlib.import_module("trainer_client.verl.nothing")


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("trainer_client", "Failure", "AnswerFailure"),
        ("trainer_client", "Instrumentation", "InstrumentationInfo"),
        ("trainer_client", "Sandbox", "SandboxInfo"),
        ("trainer_client", "Timings", "AnswerTimings"),
        ("trainer_client.settings", "PromptSettings", "RunPromptSettings"),
    ],
)
def test_an_old_class_name_is_the_same_class(module: str, old: str, new: str) -> None:
    found = importlib.import_module(module)
    with pytest.warns(DeprecationWarning, match=new):
        assert getattr(found, old) is getattr(found, new)


def test_a_name_that_never_was_is_an_attribute_error() -> None:
    assert not hasattr(trainer_client, "Nothing")


def test_the_old_module_of_the_client_still_has_it() -> None:
    from trainer_client.client import RewardClient  # noqa: PLC0415 - the path is under test

    assert RewardClient is trainer_client.RewardClient


@pytest.mark.usefixtures("forgotten")
def test_pickles_with_old_paths_can_be_read() -> None:
    content = pickle.dumps(trainer_client.Options(), protocol=0)
    old = content.replace(b"trainer_client.client.options", b"trainer_client.options")
    with pytest.warns(DeprecationWarning, match="has moved to"):
        assert pickle.loads(old) == trainer_client.Options()  # noqa: S301 - made here


def test_a_configuration_may_name_the_plugin_by_its_old_path() -> None:
    modules = "ray_kwargs.ray_init.runtime_env.env_vars.VERL_USE_EXTERNAL_MODULES"
    for name, is_fine in (("trainer_client.verl.plugin", True), ("another.plugin", False)):
        environment = {"VERL_USE_EXTERNAL_MODULES": name}
        tree = {"ray_kwargs": {"ray_init": {"runtime_env": {"env_vars": environment}}}}
        wrong = [one.key for one in check_combinations(tree, {}) if one.severity == "error"]
        assert (modules not in wrong) == is_fine
