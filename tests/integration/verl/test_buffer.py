"""B of m·B with a real TransferQueue and a real server: what is dropped is stopped as well."""

from __future__ import annotations

import itertools
import threading
import uuid
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import ray
import torch
import transfer_queue as tq
from omegaconf import OmegaConf
from tensordict import NonTensorStack, TensorDict
from verl.trainer.ppo.v1.trainer_base import PPOTrainer
from verl.utils import tensordict_utils as tu
from verl.utils.dataset.rl_dataset import collate_fn

from tests.conftest import wait_until
from tests.integration.verl.served import TASK, Served, serving
from trainer_client import RewardClient, SampleLostError
from trainer_client.integrations.verl.buffer import CANCELLED, CancellingReplayBuffer
from trainer_client.integrations.verl.dataset import make_row
from trainer_client.prompting import TrainerPrompt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

Untyped = Any  # as is all of veRL
BATCH = 2
QUICK = "print('quick')"
SLOW = "import time\ntime.sleep(600)"
sessions: list[threading.Thread] = []


@pytest.fixture(scope="module")
def served(data_dir: Path) -> Iterator[Served]:
    with serving(data_dir, slots=6) as served:
        yield served


@pytest.fixture(scope="module", autouse=True)
def queue() -> Iterator[None]:
    ray.init(num_cpus=8, include_dashboard=False, log_to_driver=False)
    tq.init(OmegaConf.create({"backend": {"SimpleStorage": {"num_data_storage_units": 1}}}))
    yield
    tq.close()
    ray.shutdown()


@pytest.fixture(autouse=True)
def empty(queue: None) -> Iterator[None]:
    del queue
    yield
    while sessions:
        sessions.pop().join(60)
    for partition_id, items in (tq.kv_list() or {}).items():
        if items:
            tq.kv_clear(keys=list(items), partition_id=partition_id)


def config(url: str, run_id: str, **sampler: Untyped) -> Untyped:
    path, name = "pkg://trainer_client.integrations.verl.buffer", "CancellingReplayBuffer"
    sampler = {
        "max_off_policy_threshold": 1,
        "max_off_policy_strategy": "drop",
        "custom_sampler": {"path": path, "name": name},
        "sampler_kwargs": {"reward_server": "${reward_server}"},
        **sampler,
    }
    server = {"url": url, "tasks": [TASK], "run_id": run_id, "outage_seconds": 0}
    v1 = {"trainer_mode": "colocate_async", "colocate_async": {}, "sampler": sampler}
    return OmegaConf.create(
        {"reward_server": server, "trainer": {"v1": v1}, "algorithm": {"filter_groups": None}}
    )


class Trainer:
    """What veRL's trainer and rollout do with prompts, without a model: programs are given."""

    def __init__(self, root: Untyped, programs: Iterator[Callable[[], str]]) -> None:
        self.config, self.trainer_mode = root, root.trainer.v1.trainer_mode
        self.step = 0
        self.programs = programs
        self.steps: dict[str, int] = {}
        self.jobs: dict[str, str] = {}
        self.client = RewardClient(root.reward_server.url, outage_seconds=0)
        self.buffer = PPOTrainer._build_replay_buffer(self)
        self.buffer.poll_interval = 0.1

    def _add_prompts_to_generate(self, count: int) -> int:
        uids = [str(uuid.uuid4()) for _ in range(count)]
        tags = [{"is_prompt": True, "status": "pending", "global_steps": self.step}] * count
        tq.kv_batch_put(keys=uids, partition_id="train", tags=tags)
        for uid in uids:
            self.steps[uid] = self.step
            job = (uid, self.step, next(self.programs))
            sessions.append(threading.Thread(target=self._session, args=job, daemon=True))
            sessions[-1].start()
        return count

    def _session(self, uid: str, step: int, program: Callable[[], str]) -> None:
        tq.kv_put(key=uid, partition_id="train", tag={"status": "running"})
        try:
            run_id = self.config.reward_server.run_id
            job = self.client.submit(TASK, code=program(), run_id=run_id, step=step)
            self.jobs[uid] = job.job_id
            self.client.wait(job)
        except SampleLostError:
            tq.kv_put(key=uid, partition_id="train", tag={"status": "failure"})
            return
        fields = TensorDict({"rm_scores": torch.zeros(1, 1)}, batch_size=1)
        tag = {"status": "success", "global_steps": step}
        tq.kv_batch_put(keys=[f"{uid}_0_0"], partition_id="train", fields=fields, tags=[tag])
        tq.kv_put(key=uid, partition_id="train", tag={"status": "finished"})

    def begin(self, warm_up: int) -> None:
        self.step = 1
        self._add_prompts_to_generate(warm_up)

    def train(self) -> tuple[set[str], dict[str, Any]]:
        """Take a step and return the prompts that were trained on."""
        self._add_prompts_to_generate(BATCH)
        batch, metrics = self.buffer.sample(self.step, "train", BATCH)
        tq.kv_clear(keys=batch.keys, partition_id="train")
        self.step += 1
        return {key.split("_")[0] for key in batch.keys}, metrics

    def under_way(self) -> list[str]:
        items = (tq.kv_list("train") or {}).get("train", {})
        return [key for key, tag in items.items() if tag.get("is_prompt")]

    def state(self, served: Served, uid: str) -> str:
        reply = served.http.get(f"/v1/jobs/{self.jobs[uid]}").json()
        return str(reply.get("kind") or reply["status"])

    def is_cancelled(self, served: Served, uid: str) -> bool:
        return self.state(served, uid) == "cancelled"


def quick() -> str:
    return QUICK


def slow() -> str:
    return SLOW


def test_leftovers_of_a_step_are_stopped_and_replaced(served: Served) -> None:
    programs = itertools.cycle([slow] * BATCH + [quick] * BATCH)  # leftovers first, always
    trainer = Trainer(config(served.url, "leftovers"), programs)
    trainer.begin(BATCH)
    trained: set[str] = set()
    for step in (1, 2, 3):
        before = set(trainer.steps)
        if step > 1:  # veRL's own batch of the step is quick, the refills are slow
            trainer.programs = itertools.chain([quick] * BATCH, itertools.repeat(slow))
        chosen, metrics = trainer.train()
        assert {trainer.steps[uid] for uid in chosen} == {step}
        assert len(chosen) == BATCH
        assert metrics[CANCELLED] == BATCH
        assert len(set(trainer.steps) - before) == BATCH + BATCH * (step > 1)
        assert len(trainer.under_way()) == BATCH  # m·B, less those that are trained on
        left = [uid for uid in trainer.steps if trainer.steps[uid] <= step and uid not in chosen]
        for uid in set(left) - trained:
            wait_until(partial(trainer.is_cancelled, served, uid))
        trained |= chosen
    assert (
        len(served.http.get("/v1/solutions", params={"run_id": "leftovers"}).json()["solutions"])
        == 3 * BATCH
    )


def test_what_is_carried_over_goes_on_until_it_is_too_old(served: Served) -> None:
    programs = itertools.chain([slow] * BATCH, itertools.repeat(quick))
    root = config(served.url, "carried", max_off_policy_threshold=2)
    trainer = Trainer(root, programs)
    trainer.begin(BATCH)
    carried = list(trainer.steps)
    _, metrics = trainer.train()
    assert metrics[CANCELLED] == 0
    assert [trainer.state(served, uid) for uid in carried] == ["running"] * BATCH
    _, metrics = trainer.train()
    assert metrics[CANCELLED] == BATCH
    assert [trainer.state(served, uid) for uid in carried] == ["cancelled"] * BATCH


def test_a_program_that_comes_too_late_is_stopped_too(served: Served) -> None:
    generated, stopped = threading.Event(), threading.Event()

    def late() -> str:
        generated.wait(120)
        return SLOW

    def patient() -> str:
        stopped.wait(120)
        return QUICK

    programs = itertools.chain([late], [quick] * BATCH, [patient] * BATCH, itertools.repeat(quick))
    trainer = Trainer(config(served.url, "late"), programs)
    trainer.begin(1)
    (uid,) = trainer.steps
    _, metrics = trainer.train()
    assert metrics[CANCELLED] == 0

    def follow() -> None:
        generated.set()
        wait_until(lambda: uid in trainer.jobs)
        wait_until(lambda: trainer.state(served, uid) == "cancelled")
        stopped.set()

    watching = threading.Thread(target=follow)
    watching.start()
    chosen, metrics = trainer.train()
    watching.join(120)
    assert metrics[CANCELLED] >= 1
    assert {trainer.steps[one] for one in chosen} == {2}
    assert uid not in trainer.under_way()


@pytest.mark.parametrize(
    "changed", [{"max_off_policy_strategy": "wait"}, {"max_off_policy_threshold": None}]
)
def test_where_nothing_is_dropped_nothing_is_stopped(
    served: Served, changed: dict[str, Any]
) -> None:
    root = config(served.url, str(uuid.uuid4()), **{"max_off_policy_threshold": 8, **changed})
    trainer = Trainer(root, itertools.chain([slow], itertools.repeat(quick)))
    trainer.begin(1)
    (uid,) = trainer.steps
    for _ in range(2):
        _, metrics = trainer.train()
        assert CANCELLED not in metrics
    assert trainer.state(served, uid) == "running"
    trainer.client.cancel(trainer.jobs[uid])


def test_validation_stops_nothing(served: Served) -> None:
    trainer = Trainer(config(served.url, "validated"), itertools.repeat(slow))
    trainer.begin(1)
    (uid,) = trainer.steps
    wait_until(lambda: uid in trainer.jobs)
    tag = {"is_prompt": True, "status": "finished", "global_steps": 9}
    tq.kv_put(key="v", partition_id="val", tag=tag)
    batch, metrics = trainer.buffer.sample(9, "val", 1)
    assert (batch.keys, metrics) == ([], {})
    assert trainer.state(served, uid) == "running"
    trainer.client.cancel(trainer.jobs[uid])


def test_a_run_goes_on_without_the_server(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    trainer = Trainer(config("http://127.0.0.1:1", "away"), itertools.repeat(quick))
    trainer.client = RewardClient(served.url)
    trainer.begin(BATCH)
    for _ in range(3):
        chosen, metrics = trainer.train()
        assert (len(chosen), metrics[CANCELLED]) == (BATCH, 0)
    said = [one for one in caplog.messages if "answers again" in one]
    assert len(said) == 1


def test_an_invalid_configuration_is_refused() -> None:
    def built(**changed: Untyped) -> Any:
        root = OmegaConf.merge(config("http://127.0.0.1:1", "r"), changed)
        fake = SimpleNamespace(
            config=root, trainer_mode=root.trainer.v1.trainer_mode, _add_prompts_to_generate=int
        )
        return PPOTrainer._build_replay_buffer(fake)

    assert isinstance(built(), CancellingReplayBuffer)
    with pytest.raises(ValueError, match="colocate_async"):
        built(trainer={"v1": {"trainer_mode": "sync"}})
    with pytest.raises(ValueError, match="filter_groups"):
        built(algorithm={"filter_groups": {"enable": True}})
    with pytest.raises(ValueError, match="reward_server"):
        built(trainer={"v1": {"sampler": {"sampler_kwargs": {"reward_server": None}}}})


def test_rows_reach_the_reward_manager_unchanged() -> None:
    parent_id = uuid.uuid4()
    chat = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    prompts = [
        TrainerPrompt.model_validate({"kind": "improve", "messages": chat, "parent_id": parent_id}),
        TrainerPrompt.model_validate({"kind": "scratch", "messages": chat[1:], "parent_id": None}),
    ]
    rows = collate_fn(
        [make_row(place, TASK, prompt, is_training=True) for place, prompt in enumerate(prompts)]
    )
    rows["uid"] = np.array(["a", "b"], dtype=object)
    tq.kv_batch_put(
        keys=["a", "b"],
        partition_id="train",
        fields=tu.get_tensordict(rows),
        tags=[{"is_prompt": True, "status": "pending", "global_steps": 1}] * 2,
    )
    found = tq.kv_batch_get(keys=["a", "b"], partition_id="train")
    for place, prompt in enumerate(prompts):
        row = {
            name: value[place].data if isinstance(value, NonTensorStack) else value[place]
            for name, value in found.items()
        }
        assert row["raw_prompt"] == prompt.chat()
        assert row["data_source"] == TASK
        seen = np.array([row["extra_info"]])[0]  # as the agent loop hands it on
        assert seen == {
            "index": place,
            "task_id": TASK,
            "is_validation": False,
            "prompt_kind": prompt.kind,
            "parent_id": None if place else str(parent_id),
        }
