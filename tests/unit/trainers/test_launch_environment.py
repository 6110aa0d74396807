"""What a launch reports about the environment that veRL will run in."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from trainer_client.launch.preflight import check_environment

if TYPE_CHECKING:
    from pathlib import Path

TREE: dict[str, Any] = {
    "actor_rollout_ref": {"rollout": {"name": "vllm"}},
    "trainer": {"device": "cuda", "n_gpus_per_node": 8, "v1": {"trainer_mode": "colocate_async"}},
}
PROBE = """
import json
found = {{"verl": "{version}", "torch": "2.11", "gpus": {gpus}, "plugin": "{plugin}",
         "missing": {missing}}}
print("noise")
print(json.dumps(found))
"""


def environment(folder: Path, **found: object) -> dict[str, str]:
    """Return an environment in which the probe finds what is said here."""
    package = folder / "trainer_client" / "integrations" / "verl"
    package.mkdir(parents=True)
    for place in (package.parents[1], package.parent, package):
        (place / "__init__.py").touch()
    said = {"version": "0.9.1", "gpus": 8, "plugin": "", "missing": [], **found}
    (package / "probe.py").write_text(PROBE.format(**said))
    return {"PYTHONPATH": str(folder), "PYTHONSAFEPATH": "1"}


def test_an_environment_with_all_that_is_wanted_passes(tmp_path: Path) -> None:
    found = {one.name: one for one in check_environment(TREE, environment(tmp_path))}
    assert {check.state for check in found.values()} == {"ok"}
    assert set(found) == {"veRL", "plug-in", "GPUs"}


def test_missing_parts_of_an_environment_are_reported(tmp_path: Path) -> None:
    given = environment(
        tmp_path,
        version="0.10.0",
        gpus=1,
        plugin="sync is veRL's own",
        missing=["transfer_queue", "vllm", "flash_attn"],
    )
    found = list(check_environment(TREE, given))
    states = [(check.name, check.state) for check in found]
    assert states == [
        ("veRL", "hint"),
        ("plug-in", "problem"),
        ("packages", "problem"),
        ("GPUs", "problem"),
        ("packages", "problem"),
    ]


def test_an_environment_without_veRL_is_a_problem() -> None:  # noqa: N802
    [found] = check_environment(TREE, {"PYTHONPATH": ":".join(sys.path)})
    assert found.state == "problem"
    assert "No module named" in found.text
