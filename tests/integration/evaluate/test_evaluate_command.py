"""The whole command against a real reward server: real programs, real boxes, real faults."""

from __future__ import annotations

import fcntl
import json
import signal
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import wait_until
from tests.integration.evaluate.model import COPY, CRASH, SKEWED, TASK, Model, block
from tests.support.lm_endpoints import fails, hangs, respond, sends

if TYPE_CHECKING:
    import httpx

    from tests.integration.evaluate.model import EvaluateCommand
    from trainer_client.evaluate.plan import SampleSlot

LONG = COPY + "# and so on\n" * 500
FROM_SCRATCH = ["I do not know.", block(CRASH), block(SKEWED), block(LONG), block(COPY)]
IMPROVING = {2: block(COPY), 4: block(CRASH)}
FIVE = ("--samples", "5", "--seeds", "2", "--concurrency", "4")


def write(slot: SampleSlot) -> str:
    return FROM_SCRATCH[slot.index] if slot.kind == "scratch" else IMPROVING[slot.index]


def solutions(client: httpx.Client, run_id: str) -> list[dict[str, Any]]:
    found = client.get("/v1/solutions", params={"run_id": run_id, "limit": 500}).json()
    listed: list[dict[str, Any]] = found["solutions"]
    return listed


def test_an_evaluation_from_the_first_sample_to_the_report(
    command: EvaluateCommand, client: httpx.Client
) -> None:
    model = command.endpoint.behave = Model(write)
    done = command.run(*FIVE, "--json", str(command.out.parent / "too.json"))
    assert done.returncode == 0, done.stderr
    report = command.report()
    assert json.loads((command.out.parent / "too.json").read_text()) == report
    (task,) = report["tasks"]
    assert report["complete"]
    assert len(model.asked) == len(set(model.asked)) == 14
    assert len({line.get("solution_id") for line in command.lines()} - {None}) == 14
    check_against_the_server(task, report["run_id"], client)
    assert (task["scratch"]["share_valid"]["mean"], task["improve"]["share_valid"]["mean"]) == (
        pytest.approx(0.6),
        pytest.approx(0.5),
    )
    assert task["scratch"]["share_valid"]["standard_error"] == 0
    assert task["best_of_both"]["mean_score"]["mean"] < task["scratch"]["mean_score"]["mean"]
    assert sum(task["not_improved_on"].values()) == 2
    assert task["errors"] == {
        "scratch": {"no_code": 2, "nonzero_exit": 2},
        "improve": {"nonzero_exit": 2},
    }
    assert task["notes"][0] == "twin data: not comparable with the paper"
    assert task["rank"] is None
    for shown in (done.stdout, (command.out / "report.md").read_text()):
        assert "twin data: not comparable with the paper" in shown
        assert "Llama3.1-405B AIDE" in shown
    asked_again(command, model)


def check_against_the_server(task: dict[str, Any], run_id: str, client: httpx.Client) -> None:
    """Compare with what the server itself makes of the same samples."""
    for seed, figures in enumerate(task["seeds"]):
        run = f"{run_id}/{seed}"
        stored = solutions(client, run)
        assert len(stored) == 7
        best = client.get(f"/v1/runs/{run}/best-of-both", params={"task_id": TASK}).json()
        assert (best["samples"], best["improved"], best["better"]) == (5, 2, 1)
        for part, name in [("scratch", "from_scratch"), ("best_of_both", "best_of_both")]:
            assert figures[part]["mean_reward"] == pytest.approx(best[name]["mean"])
        scores = [one["score"] for one in stored if one["valid"]]
        assert figures["best_of_both"]["best_score"] == min(scores)


def asked_again(command: EvaluateCommand, model: Model) -> None:
    """The same command draws nothing; others are refused, and say why."""
    command.endpoint.stop_listening()
    again = command.run(*FIVE)
    assert (again.returncode, len(model.asked)) == (0, 14)
    assert "going on: 10 of 10" in again.stderr
    other = command.run("--samples", "6", "--seeds", "2", "--temperature", "0.9")
    assert other.returncode == 2
    assert "samples is 6, before 5; temperature is 0.9, before 0.7" in other.stderr
    with (command.out / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "another evaluation is writing" in command.run(*FIVE).stderr
    lines = (command.out / "samples.jsonl").read_text().splitlines(keepends=True)
    (command.out / "samples.jsonl").write_text("".join(lines[:-1]))
    run = (command.out / "run.json").read_text()
    digest = json.loads(run)["tasks"][TASK]["data_digest"]
    (command.out / "run.json").write_text(run.replace(digest, "of-other-data"))
    changed = command.run(*FIVE)
    assert changed.returncode == 2
    assert "is not that of the folder's samples" in changed.stderr


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_evaluation_resumes_and_scores_nothing_twice(
    command: EvaluateCommand, client: httpx.Client, number: signal.Signals
) -> None:
    generated: list[str] = []

    def never_the_same(slot: SampleSlot) -> str:
        del slot
        generated.append("")
        return block(f"import time\ntime.sleep(0.3)\n{COPY}print({len(generated)})\n")

    command.endpoint.behave = Model(never_the_same)
    words = ("--samples", "4", "--seeds", "2", "--concurrency", "4", "--run-id", f"r{number}")
    with command.start(*words) as process:
        wait_until(lambda: 0 < len(command.lines()) < len(command.lines("drawn.jsonl")))
        process.send_signal(number)
        said = process.stderr.read() if process.stderr else ""
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    assert ("goes on" in said) == (number == signal.SIGINT)
    before = command.lines()
    assert 0 < len(before) < 16
    with (command.out / "samples.jsonl").open("a") as file:
        file.write('{"task_id": "torn')
    done = command.run(*words)
    assert done.returncode == 0, done.stderr
    assert "going on: " in done.stderr
    after = command.lines()
    assert after[: len(before)] == before
    assert len({(line["seed"], line["kind"], line["index"]) for line in after}) == 16
    assert len(after) == 16
    stored = [one for seed in (0, 1) for one in solutions(client, f"r{number}/{seed}")]
    assert sorted(one["solution_id"] for one in stored) == sorted(
        line["solution_id"] for line in after
    )
    assert not (command.out / "drawn.jsonl").exists()


def test_lost_samples_are_no_numbers_and_are_tried_again(
    command: EvaluateCommand, client: httpx.Client
) -> None:
    slow = block(f"import time\ntime.sleep(2)\n{COPY}")
    command.endpoint.behave = Model(lambda _: slow)
    command.endpoint.script = [fails(500), sends(respond(b"no JSON")), hangs]
    words = ("--samples", "2", "--seeds", "1", "--no-improve", "--run-id", "lossy", "--no-text")
    first = command.run(*words, "--deadline-seconds", "3", "--score-seconds", "0.5")
    assert first.returncode == 3, first.stderr
    assert command.lines() == []
    (task,) = command.report()["tasks"]
    assert (task["unfinished"], task["best_score"]) == (2, None)
    assert sum(task["lost"].values()) == 2
    second = command.run(*words)
    assert second.returncode == 0, second.stderr
    assert [line["completion"] for line in command.lines()] == [None, None]
    assert len(solutions(client, "lossy/0")) == 2
    (task,) = command.report()["tasks"]
    assert (task["unfinished"], task["lost"]) == (0, {})
    assert "improve" not in task


def test_an_endpoint_refusal_ends_the_run_without_leaking_the_key(command: EvaluateCommand) -> None:
    key = "sk-not-to-be-shown"
    command.endpoint.behave = sends(respond(f"wrong key {key}".encode(), 401))
    done = command.run("--samples", "3", OPENAI_API_KEY=key)
    assert done.returncode == 1
    assert "status 401: wrong key ***" in done.stderr
    assert f"Bearer {key}" in command.endpoint.headers[0]
    texts = [file.read_text() for file in command.out.iterdir()]
    assert key not in "".join([done.stdout, done.stderr, *texts])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--samples", "0"], "argument --samples: '0' is not a whole number from 1 on"),
        (["--top-p", "0"], "argument --top-p: '0' is not a number above 0 up to 1"),
        (["--temperature", "nan"], "'nan' is not a number from 0 up to 2"),
        (["--prompt-tokens", "9"], "--prompt-tokens needs a --tokenizer"),
        (["--tokenizer", "t", "--prompt-characters", "9"], "exclude each other"),
        (["--server", "ftp://x"], "it must begin with http"),
        (["--endpoint", "http://me:secret@x"], "must not contain a password"),
        (["--json", "no/such/folder/x.json"], "there is no folder no/such/folder"),
        (["--run-id", "r" * 101], "has 1 to 100 characters"),
        (["--sample", "3"], "unrecognized arguments: --sample 3"),
    ],
)
def test_wrong_options_give_one_line(command: EvaluateCommand, words: list[str], said: str) -> None:
    done = command.run(*words)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not command.out.exists()


def test_a_refusal_is_reported_before_generation(command: EvaluateCommand) -> None:
    unknown = command.run("--task", "no-such-task")
    assert (unknown.returncode, command.endpoint.requests) == (1, [])
    assert "the server refuses no-such-task" in unknown.stderr
    small = command.run("--prompt-characters", "100")
    assert "the shortest prompt of this task needs" in small.stderr
    no_tokenizer = command.run("--tokenizer", "qwen")
    assert "there is no such tokenizer" in no_tokenizer.stderr
    assert not (command.out / "run.json").exists()


def test_the_name_of_another_evaluations_run_is_refused(command: EvaluateCommand) -> None:
    words = ("--samples", "1", "--seeds", "1", "--run-id", "taken")
    command.endpoint.behave = Model(lambda _: "nothing")
    assert command.run(*words).returncode == 0
    command.endpoint.behave = Model(lambda _: "something else")
    done = replace(command, out=command.out.parent / "other").run(*words)
    assert done.returncode == 1
    assert "another evaluation has used this --run-id" in done.stderr
