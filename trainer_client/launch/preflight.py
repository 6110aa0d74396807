"""Preflight checks, before a run occupies its GPUs. Each check prints one line.

The checks use the real parts: the server over HTTP, the plug-in in a process with the run's
environment, the model's own tokenizer for prompt lengths.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import httpx

from trainer_client.client.errors import RequestRefusedError, RewardServerError
from trainer_client.integrations.verl.findings import at
from trainer_client.launch.prompt_lengths import measure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from trainer_client.client.answers import JsonObject
    from trainer_client.client.blocking import RewardClient
    from trainer_client.integrations.verl.findings import Tree
    from trainer_client.launch.prompt_lengths import Count
    from trainer_client.settings import RunSettings

_PROBE_SECONDS = 300.0
_READY_SECONDS = 10.0
_TRIED = "0.9."


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check, with its remedy."""

    name: str
    state: Literal["ok", "hint", "problem"]
    text: str

    def __str__(self) -> str:
        return f"{self.state:<8} {self.name:<10} {self.text}"


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """The run that is about to start."""

    tree: Tree
    settings: RunSettings
    client: RewardClient
    is_fresh: bool = False

    @property
    def in_flight(self) -> int:
        """How many programs may run at once."""
        batch = at(self.tree, "data.train_batch_size") * at(
            self.tree, "actor_rollout_ref.rollout.n"
        )
        if at(self.tree, "trainer.v1.trainer_mode") == "sync":
            return int(batch)
        return int(batch * (1 + at(self.tree, "trainer.v1.colocate_async.num_warmup_batches")))


def check_environment(tree: Tree, environment: Mapping[str, str]) -> Iterator[Check]:
    """Check veRL, the plug-in and GPUs in a process with the trainer's environment."""
    mode = str(at(tree, "trainer.v1.trainer_mode"))
    words = [sys.executable, "-m", "trainer_client.integrations.verl.probe", mode]
    done = subprocess.run(
        words, env=dict(environment), capture_output=True, timeout=_PROBE_SECONDS, check=False
    )
    if done.returncode != 0:
        last = (done.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"])[
            -1
        ]
        yield Check("veRL", "problem", f"a process of the trainer fails at once: {last}")
        return
    found = json.loads(done.stdout.splitlines()[-1])
    yield _check_version(found)
    is_wanted = at(tree, "reward_server.durations.enabled", default=True)
    if found["plugin"] and is_wanted:
        yield Check("plug-in", "problem", f"not active for {mode}: {found['plugin']}")
    else:
        state = f"duration-aware trainer registered for {mode}" if is_wanted else "not wanted"
        yield Check("plug-in", "ok", state)
    yield from _check_machine(tree, found)


def check_server(planned: PlannedRun) -> Iterator[Check]:
    """Check that the server is ready, accepts the API key, and has the tasks."""
    url = planned.settings.url.rstrip("/")
    try:
        reply = httpx.get(f"{url}/readyz", timeout=_READY_SECONDS, trust_env=False)
        parts = {name: part for name, part in reply.json().items() if isinstance(part, dict)}
    except (httpx.HTTPError, ValueError, AttributeError) as error:
        yield Check("server", "problem", f"{url} does not answer as a reward server: {error}")
        return
    detail = ", ".join(f"{name}: {part.get('detail')}" for name, part in parts.items())
    is_ready = reply.status_code == httpx.codes.OK
    yield Check("server", "ok" if is_ready else "problem", f"{url} ({detail})")
    if is_ready:
        yield from _check_tasks(planned, _slots(parts))


def check_run(planned: PlannedRun) -> Iterator[Check]:
    """Check whether the run is new or resumes, from checkpoints and at the server."""
    run_id, step = planned.settings.run_id, latest_step(planned.tree)
    folder = at(planned.tree, "trainer.default_local_dir")
    try:
        planned.client.get(f"/v1/runs/{run_id}/statistics")
        is_known = True
    except RequestRefusedError as error:
        if error.status != httpx.codes.NOT_FOUND:
            raise
        is_known = False
    if planned.is_fresh and (step is not None or is_known):
        where = f"a checkpoint in {folder}" if step is not None else "solutions at the server"
        yield Check("run", "problem", f"{run_id} is not new, it has {where}: choose --run-id")
    elif step is not None and at(planned.tree, "trainer.resume_mode") != "disable":
        yield Check("run", "ok", f"{run_id} goes on after step {step} from {folder}")
    elif is_known:
        text = f"{run_id} has solutions at the server but no checkpoint in {folder}: it begins at"
        yield Check("run", "hint", f"{text} step 1 and may improve on them; else choose --run-id")
    else:
        yield Check("run", "ok", f"{run_id} is new; checkpoints go to {folder}")


def check_prompts(planned: PlannedRun, load: Callable[[], Count]) -> Iterator[Check]:
    """Count the tokens of each task's from-scratch prompt with the model's tokenizer."""
    try:
        count = load()
    except ValueError as error:
        text = f"{error}; give --model a folder, or fetch it first: huggingface-cli download NAME"
        yield Check("tokenizer", "problem", text)
        return
    limit = at(planned.tree, "data.max_prompt_length")
    for task in planned.settings.tasks:
        try:
            length = measure(planned.client, planned.settings, task, limit, count)
        except (RewardServerError, ValueError) as error:
            yield Check("prompts", "problem", f"{task}: {error}")
            continue
        room = f"a program to improve on may have about {length.room_characters:,} characters"
        yield Check("prompts", "ok", f"{task}: {length.tokens} of {limit} tokens; {room}")


def latest_step(tree: Tree) -> int | None:
    """Return the step of the newest checkpoint, if there is one."""
    file = Path(at(tree, "trainer.default_local_dir")) / "latest_checkpointed_iteration.txt"
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None


def _check_version(found: JsonObject) -> Check:
    text = f"{found['verl']} with torch {found['torch']}"
    if str(found["verl"]).startswith(_TRIED):
        return Check("veRL", "ok", text)
    return Check("veRL", "hint", f"{text}; this package was made for {_TRIED}x")


def _check_machine(tree: Tree, found: JsonObject) -> Iterator[Check]:
    missing = set(found["missing"])
    if "transfer_queue" in missing:
        yield Check("packages", "problem", "pip install TransferQueue: the V1 trainer needs it")
    if at(tree, "trainer.device") != "cuda":
        return
    wanted = at(tree, "trainer.n_gpus_per_node")
    is_enough = found["gpus"] >= wanted
    yield Check("GPUs", "ok" if is_enough else "problem", f"{found['gpus']}, wanted are {wanted}")
    rollout = at(tree, "actor_rollout_ref.rollout.name")
    wants = {"flash_attn"} | ({"vllm"} if rollout == "vllm" else set())
    if missing & wants:
        names = ", ".join(sorted(missing & wants))
        text = f"{names} not installed: pip install 'verl[vllm,fsdp]==0.9.1'"
        yield Check("packages", "problem", text)


def _check_tasks(planned: PlannedRun, slots: int | None) -> Iterator[Check]:
    try:
        known = {task["id"]: task for task in planned.client.get("/v1/tasks")["tasks"]}
    except RequestRefusedError as error:
        text = f"{error}; set REWARD_SERVER_API_KEY to a key of the server"
        yield Check("key", "problem", text)
        return
    yield Check("key", "ok", "accepted")
    for task in planned.settings.tasks:
        if task not in known:
            text = f"{task} is not there; on the server: reward-server tasks prepare {task} --twin"
            yield Check("task", "problem", text)
        else:
            yield Check(
                "task", "ok", f"{task}, at most {known[task]['wall_seconds']:g} s a program"
            )
    walls = [known[task]["wall_seconds"] for task in planned.settings.tasks if task in known]
    if slots and walls:
        yield _check_slots(planned, slots, max(walls))


def _check_slots(planned: PlannedRun, slots: int, wall_seconds: float) -> Check:
    longest = -(-planned.in_flight // slots) * min(
        wall_seconds, planned.settings.wall_seconds or wall_seconds
    )
    text = f"{planned.in_flight} programs at once on {slots} slots, {longest / 3600:.1f} h at worst"
    if longest > planned.settings.deadline_seconds:
        limit = f"reward_server.deadline_seconds is {planned.settings.deadline_seconds:g}"
        return Check("slots", "hint", f"{text}, but {limit}: the last of them would be lost")
    return Check("slots", "ok", text)


def _slots(parts: JsonObject) -> int | None:
    found = re.search(r"(\d+) slots", str(parts.get("sandbox", {}).get("detail")))
    return int(found.group(1)) if found else None
