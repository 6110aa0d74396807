"""veRL's own loader over a real server: rows with prompts of the moment, and never an error."""

from __future__ import annotations

import io
import pickle
import uuid
from typing import TYPE_CHECKING, Any

import pytest
import torch
from omegaconf import OmegaConf
from torchdata.stateful_dataloader import StatefulDataLoader
from transformers import PreTrainedTokenizerFast
from verl.trainer.ppo.utils import create_rl_dataset, create_rl_sampler
from verl.trainer.ppo.v1.trainer_base import TRAINER_REGISTRY
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync
from verl.utils.dataset.rl_dataset import collate_fn
from verl.utils.skip import SkipManager

from tests.conftest import ROOT
from tests.integration.verl.served import OTHER, TASK, Served, serving
from tests.support.bpe import TEMPLATE, train
from trainer_client.integrations.verl.plugin import DurationAwareSync

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from trainer_client.prompting import PromptRequest, TrainerPrompt

Untyped = Any  # as is all of veRL
MOST = 700
BATCH = 16


@pytest.fixture(scope="module")
def served(data_dir: Path) -> Iterator[Served]:
    with serving(data_dir) as served:
        yield served


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> PreTrainedTokenizerFast:
    texts = [file.read_text() for file in (ROOT / "reward_server").glob("*.py")]
    folder: Path = train(tmp_path_factory.mktemp("bpe"), texts)
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    tokenizer.chat_template = TEMPLATE
    return tokenizer


@pytest.fixture(scope="module")
def run_id() -> str:
    return str(uuid.uuid4())


@pytest.fixture(scope="module")
def parents(served: Served, run_id: str) -> dict[int, set[str]]:
    return {step: {served.score(run_id, step, 10 * step + n) for n in range(3)} for step in (1, 2)}


@pytest.fixture
def step_three() -> Iterator[None]:
    before = SkipManager.step
    SkipManager.set_step(3)
    yield
    SkipManager.set_step(before)


def config(url: str, run_id: str, data: dict[str, Any] | None = None, **node: Untyped) -> Untyped:
    prompts = {"epoch_rows": 64, "validation_rows": 5, **node.pop("prompts", {})}
    server = {
        "url": url,
        "tasks": [TASK],
        "run_id": run_id,
        "outage_seconds": 0,
        "durations": {"enabled": False},
        "prompts": prompts,
        **node,
    }
    rows = {
        "custom_cls": {
            "path": "pkg://trainer_client.integrations.verl.dataset",
            "name": "TaskDataset",
        },
        "reward_server": "${reward_server}",
        "train_batch_size": BATCH,
        "max_prompt_length": MOST,
        "dataloader_num_workers": 0,
        "shuffle": True,
        "seed": 1,
        "apply_chat_template_kwargs": {},
        **(data or {}),
    }
    root = {"reward_server": server, "data": rows, "trainer": {"v1": {"trainer_mode": "sync"}}}
    return OmegaConf.create(root)


def made(
    root: Untyped, tokenizer: PreTrainedTokenizerFast, files: object = "train", most: int = -1
) -> Untyped:
    return create_rl_dataset(files, root.data, tokenizer, None, max_samples=most)


def loader(dataset: Untyped, root: Untyped, size: int = BATCH) -> Untyped:
    """Return the loader that the trainer makes."""
    return StatefulDataLoader(
        dataset=dataset,
        batch_size=size,
        num_workers=0,
        drop_last=True,
        collate_fn=collate_fn,
        sampler=create_rl_sampler(root.data, dataset),
    )


def count(tokenizer: PreTrainedTokenizerFast, messages: list[dict[str, str]]) -> int:
    shown = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    return len(tokenizer(shown, add_special_tokens=False)["input_ids"])


@pytest.mark.usefixtures("step_three")
def test_a_batch_has_prompts_of_the_step_before(
    served: Served,
    tokenizer: PreTrainedTokenizerFast,
    run_id: str,
    parents: dict[int, set[str]],
) -> None:
    root = config(served.url, run_id)
    batches = list(loader(made(root, tokenizer), root))
    assert len(batches) == 4
    infos = [info for batch in batches for info in batch["extra_info"]]
    kinds = [info["prompt_kind"] for info in infos]
    assert 16 < kinds.count("improve") < 48
    found = {info["parent_id"] for info in infos if info["prompt_kind"] == "improve"}
    assert found == parents[2]
    assert {info["parent_id"] for info in infos if info["prompt_kind"] == "scratch"} == {None}
    for solution_id in found:
        assert served.http.get(f"/v1/solutions/{solution_id}").status_code == 200
    lengths = [count(tokenizer, prompt) for batch in batches for prompt in batch["raw_prompt"]]
    assert MOST / 2 < max(lengths) <= MOST
    assert sorted(info["index"] for info in infos) == list(range(64))
    batch = batches[0]
    assert list(batch["data_source"]) == [TASK] * BATCH
    assert list(batch["tools_kwargs"]) == list(batch["interaction_kwargs"]) == [{}] * BATCH
    assert batch["reward_model"][0] == {"style": "rule", "ground_truth": ""}
    assert batch["dummy_tensor"].shape == (BATCH, 1)
    assert list(batch["index"]) == [info["index"] for info in batch["extra_info"]]


@pytest.mark.usefixtures("step_three", "parents")
def test_a_resumed_run_draws_what_the_first_would_have(
    served: Served,
    tokenizer: PreTrainedTokenizerFast,
    run_id: str,
) -> None:
    for size in (1, BATCH):
        root = config(served.url, run_id, prompts={"epoch_rows": 128})
        first = loader(made(root, tokenizer), root, size)
        rows = iter(first)
        before = [next(rows) for _ in range(3)]
        saved = io.BytesIO()
        torch.save(first.state_dict(), saved)
        expected = [next(rows) for _ in range(3)]
        second = loader(made(root, tokenizer), root, size)
        saved.seek(0)
        second.load_state_dict(torch.load(saved, weights_only=False))
        rows = iter(second)
        again = [next(rows) for _ in range(3)]
        for one, other in zip(expected, again, strict=True):
            assert list(one["extra_info"]) == list(other["extra_info"])
            assert list(one["raw_prompt"]) == list(other["raw_prompt"])
        assert [list(one["index"]) for one in before] != [list(one["index"]) for one in again]


@pytest.mark.usefixtures("step_three", "parents")
def test_rows_alternate_between_tasks_with_one_request_each(
    served: Served,
    tokenizer: PreTrainedTokenizerFast,
    run_id: str,
) -> None:
    root = config(served.url, run_id, tasks=[TASK, OTHER])
    dataset = made(root, tokenizer)
    requests: list[PromptRequest] = []
    draw = dataset._prompts.draw

    def record(request: PromptRequest) -> list[TrainerPrompt]:
        requests.append(request)
        prompts: list[TrainerPrompt] = draw(request)
        return prompts

    dataset._prompts.draw = record
    rows = dataset.__getitems__(list(range(20)))
    assert [row["data_source"] for row in rows] == [TASK, OTHER] * 10
    assert [(request.task_id, request.count, request.step) for request in requests] == [
        (TASK, 10, 3),
        (OTHER, 10, 3),
    ]
    assert {row["extra_info"]["task_id"] for row in rows} == {TASK, OTHER}
    assert all(row["extra_info"]["prompt_kind"] == "scratch" for row in rows[1::2])
    assert dataset[7]["data_source"] == OTHER
    assert len({request.seed for request in requests}) == len(requests) == 3


def test_the_number_of_requests_is_bounded(
    served: Served, tokenizer: PreTrainedTokenizerFast
) -> None:
    root = config(served.url, "r", prompts={"epoch_rows": 3000})
    dataset = made(root, tokenizer)
    assert len(dataset.__getitems__(list(range(2500)))) == 2500
    assert dataset.fallbacks == 0


@pytest.mark.usefixtures("step_three", "parents")
def test_validation_is_from_scratch(
    served: Served, tokenizer: PreTrainedTokenizerFast, run_id: str
) -> None:
    root = config(served.url, run_id, prompts={"improve_fraction": 1})
    dataset = made(root, tokenizer, ["validation"])
    assert len(dataset) == 5
    rows = [dataset[place] for place in range(5)]
    assert {row["extra_info"]["prompt_kind"] for row in rows} == {"scratch"}
    assert all(count(tokenizer, row["raw_prompt"]) <= MOST for row in rows)
    assert len(made(root, tokenizer, "validation", most=2)) == 2
    with pytest.raises(IndexError):
        dataset[5]


@pytest.mark.parametrize(
    ("files", "data", "said"),
    [
        ("train.parquet", {}, "reads no files"),
        (["train", "validation"], {}, "reads no files"),
        (None, {}, "reads no files"),
        ("train", {"train_batch_size": 65}, "epoch of 64 rows .*train_batch_size=65"),
        ("train", {"dataloader_num_workers": 8}, "dataloader_num_workers must be 0"),
        ("train", {"max_prompt_length": 30}, "max_prompt_length=30: the shortest has"),
        ("validation", {"max_prompt_length": 30}, "max_prompt_length=30: the shortest has"),
        ("train", {"reward_server": None}, "no node 'reward_server'"),
    ],
)
def test_a_run_that_cannot_work_does_not_start(
    served: Served,
    tokenizer: PreTrainedTokenizerFast,
    files: object,
    data: dict[str, Any],
    said: str,
) -> None:
    with pytest.raises(ValueError, match=said):
        made(config(served.url, "r", data), tokenizer, files)


@pytest.mark.usefixtures("parents")
def test_a_template_with_words_of_its_own_is_counted(
    served: Served,
    tokenizer: PreTrainedTokenizerFast,
    run_id: str,
) -> None:
    wordy = "{{ 'Think about it carefully. ' * times }}" + tokenizer.chat_template
    odd = pickle.loads(pickle.dumps(tokenizer))  # noqa: S301
    odd.chat_template = wordy
    data = {"apply_chat_template_kwargs": {"times": 20}, "max_prompt_length": 900}
    dataset = made(config(served.url, run_id, data, prompts={"improve_fraction": 1}), odd)
    for row in dataset.__getitems__(list(range(16))):
        ids = odd.apply_chat_template(
            row["raw_prompt"], add_generation_prompt=True, return_dict=False, times=20
        )
        assert len(ids) <= 900


def test_durations_want_their_trainer(
    served: Served,
    tokenizer: PreTrainedTokenizerFast,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = config(served.url, "r", durations={"enabled": True})
    monkeypatch.setitem(TRAINER_REGISTRY, "sync", PPOTrainerSync)
    monkeypatch.setitem(TRAINER_REGISTRY, "colocate_async", PPOTrainerSync)
    with pytest.raises(RuntimeError, match="VERL_USE_EXTERNAL_MODULES"):
        made(root, tokenizer)
    monkeypatch.setitem(TRAINER_REGISTRY, "sync", DurationAwareSync)
    made(root, tokenizer)
    del root.trainer
    with pytest.raises(RuntimeError, match="colocate_async"):
        made(root, tokenizer)


async def test_a_multimodal_model_gets_no_images(
    served: Served, tokenizer: PreTrainedTokenizerFast
) -> None:
    dataset = made(config(served.url, "r"), tokenizer)
    seen = await type(dataset).process_multi_modal_info([], image_patch_size=14, config=None)
    assert seen == (None, None, None)


@pytest.mark.usefixtures("step_three", "parents")
def test_a_server_that_dies_meanwhile_stops_nobody(
    served: Served,
    tokenizer: PreTrainedTokenizerFast,
    run_id: str,
) -> None:
    root = config(served.url, run_id, prompts={"improve_fraction": 1})
    dataset = pickle.loads(pickle.dumps(made(root, tokenizer)))  # noqa: S301
    rows = iter(loader(dataset, root, 1))
    assert next(rows)["extra_info"][0]["prompt_kind"] == "improve"
    served.kill()
    left = list(rows)
    assert len(left) == 63
    assert {row["extra_info"][0]["prompt_kind"] for row in left} == {"scratch"}
    assert dataset.fallbacks == 63
    assert all(count(tokenizer, row["raw_prompt"][0]) <= MOST for row in left)
