"""The model's container in `compose.yaml` hosts the model in the way the command does."""

from __future__ import annotations

import re
from typing import Any

import yaml

from reward_server.cli.lm import Build, Hosting, Machine, plan
from tests.conftest import ROOT

KEY = "sixteen-letters-or-more"


def with_defaults(text: str) -> str:
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text)


def services() -> dict[str, Any]:
    text = with_defaults((ROOT / "compose.yaml").read_text())
    found: dict[str, Any] = yaml.safe_load(text)["services"]
    return found


def test_the_container_runs_what_the_command_prints() -> None:
    hosting = Hosting(host="0.0.0.0", api_key=KEY)  # noqa: S104 - inside a container's network
    machine = Machine(has_accelerator=True, has_bfloat16=True)
    launch = plan(hosting, Build("0.32.0", is_cpu=False), machine)
    lm = services()["lm"]
    assert [*lm["entrypoint"], *lm["command"]][1:] == list(launch.command[1:])
    assert lm["environment"].keys() == {*launch.variables, *launch.secrets}


def test_the_server_gets_the_models_url_and_does_not_wait_for_it() -> None:
    found = services()
    environment = found["server"]["environment"]
    for name in ("KIND", "URL", "MODEL", "API_KEY"):
        assert environment[f"REWARD_SERVER_INSTRUMENT__{name}"] is None
    served = found["lm"]["command"]
    port = served[served.index("--port") + 1]
    text = (ROOT / "compose.yaml").read_text()
    assert f"REWARD_SERVER_INSTRUMENT__URL=http://lm:{port}/v1" in text
    assert "lm" not in found["server"]["depends_on"]
    assert found["lm"]["profiles"] == ["lm"]
