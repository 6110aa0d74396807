"""A server with a language model that may be up, down or wrong."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.conftest import COMMAND, ROOT, start_server, stop_server
from tests.support.lm_endpoints import MODEL, ScriptedEndpoint, places

if TYPE_CHECKING:
    from collections.abc import Iterator

TASK = "spooky-author-identification"
SOLUTION = (Path(__file__).parent / "solutions" / f"{TASK}.py").read_text()
PLACES = ((7, "imported packages"), (13, "loaded data"), (27, "defined model"))
UNFINISHED = "\n".join([*SOLUTION.split("\n")[:27], "raise SystemExit(3)", ""])
STATIC_FOUND = ["imported packages", "loaded data", "defined model"]


@pytest.fixture(scope="module")
def scripted() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint() as endpoint:
        endpoint.behave = places(*PLACES)
        yield endpoint


@pytest.fixture(scope="module")
def own_dir(data_dir: Path) -> Iterator[Path]:
    folder = data_dir.parent / f"reward-server-lm-{uuid.uuid4()}"
    folder.mkdir(mode=0o755)
    for task in data_dir.glob("*/prepared"):
        (folder / task.parent.name).symlink_to(task.parent)
    yield folder
    shutil.rmtree(folder)


def lm_settings(scripted: ScriptedEndpoint, **extra: str) -> dict[str, str]:
    named = {"KIND": "lm", "URL": scripted.url, "MODEL": MODEL, "LM_DEADLINE_SECONDS": "20"}
    return {f"REWARD_SERVER_INSTRUMENT__{k}": v for k, v in {**named, **extra}.items()}


@pytest.fixture(scope="module")
def server(
    scripted: ScriptedEndpoint, own_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    scripted.go()  # it is not there yet when the server starts
    log = tmp_path_factory.mktemp("lm") / "log"
    process, url = start_server(own_dir, log, lm_settings(scripted, API_KEY="key-of-the-model"))
    try:
        with httpx.Client(base_url=url, timeout=120) as client:
            yield client
        assert "key-of-the-model" not in log.read_text()
    finally:
        stop_server(process)


def score(server: httpx.Client, code: str, **fields: object) -> dict[str, Any]:
    response = server.post("/score", json={"task_id": TASK, "code": code, **fields})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def lm_state(server: httpx.Client) -> dict[str, Any]:
    response = server.get("/readyz")
    assert response.status_code == 200
    assert response.json()["ready"] is True
    state: dict[str, Any] = response.json()["lm"]
    return state


def wait_until_ready(scripted: ScriptedEndpoint, server: httpx.Client) -> None:
    scripted.come()
    deadline = time.monotonic() + 60
    while not lm_state(server)["ready"]:
        assert time.monotonic() < deadline, lm_state(server)
        time.sleep(0.2)


def test_rewards_do_not_need_the_model_which_is_used_when_back(
    scripted: ScriptedEndpoint, server: httpx.Client
) -> None:
    assert lm_state(server)["ready"] is False
    assert lm_state(server)["detail"].startswith("degraded: ")
    alone = score(server, SOLUTION)
    assert alone["status"] == "scored"
    assert alone["instrumentation"] == {
        "kind": "static",
        "model": None,
        "verified": True,
        "reason": "the language model is down",
    }
    wait_until_ready(scripted, server)
    assert lm_state(server)["detail"] == f"ready, {MODEL}"
    helped = score(server, SOLUTION)
    assert helped["reward"] == alone["reward"]
    assert helped["instrumentation"] == {
        "kind": "lm",
        "model": MODEL,
        "verified": True,
        "reason": None,
    }
    stored = server.get(f"/v1/solutions/{helped['solution_id']}").json()
    assert stored["instrumentation"] == helped["instrumentation"]
    assert stored["code"] == SOLUTION


def test_progress_earns_the_same_with_and_without_the_model(
    scripted: ScriptedEndpoint, server: httpx.Client
) -> None:
    wait_until_ready(scripted, server)
    answer = score(server, UNFINISHED)
    assert answer["instrumentation"]["kind"] == "lm"
    assert answer["milestones"] == STATIC_FOUND
    assert answer["reward"] == pytest.approx(-9.7)


def test_the_models_answers_are_cached_in_the_store(
    scripted: ScriptedEndpoint, server: httpx.Client
) -> None:
    wait_until_ready(scripted, server)
    code = f"{UNFINISHED}# once\n"
    score(server, code)
    asked = len(scripted.asked)
    again = score(server, code)
    assert again["instrumentation"]["kind"] == "lm"
    assert len(scripted.asked) == asked


def test_comments_and_guesses_earn_nothing_with_the_model(
    scripted: ScriptedEndpoint, server: httpx.Client
) -> None:
    wait_until_ready(scripted, server)
    code = (
        "import sys\nfor number in range(1, 8):\n"
        "    print('loaded data', 'trained model', number)\n"
        "    sys.stderr.write('\\x1e' + str(number) * 64 + '\\n')\n"
        "sys.stderr.write('\\x1e' * 100_000)\n"
    )
    labels = [label for _, label in PLACES]
    scripted.behave = places(*((line, label) for line in range(1, 6) for label in labels))
    try:
        answer = score(server, code)
    finally:
        scripted.behave = places(*PLACES)
    assert answer["milestones"] == []
    assert answer["reward"] == -10


def test_no_field_of_a_request_reaches_the_model(
    scripted: ScriptedEndpoint, server: httpx.Client
) -> None:
    wait_until_ready(scripted, server)
    for field in ("n", "max_tokens", "temperature", "model"):
        refused = server.post("/score", json={"task_id": TASK, "code": "x = 1", field: 10**6})
        assert refused.status_code == 422
    score(server, f"{UNFINISHED}# fields\n", run_id="secret-run", sample_id="secret-sample")
    body = scripted.asked[-1]
    assert (body["n"], body["temperature"], body["max_tokens"]) == (1, 0, 192)
    assert "secret" not in str(body)
    assert "Authorization: Bearer key-of-the-model" in scripted.headers[-1]


def test_no_private_text_reaches_the_model(
    scripted: ScriptedEndpoint, server: httpx.Client, own_dir: Path
) -> None:
    wait_until_ready(scripted, server)
    score(server, f"{UNFINISHED}# private\n")
    sent = str(scripted.asked)
    assert "train_test_split" in sent
    description = server.get(f"/v1/tasks/{TASK}").json()["description"]
    assert description.strip().split("\n")[0] not in sent
    answers = sorted((own_dir / TASK / "prepared" / "private").glob("*.csv"))
    assert answers
    for file in answers:
        for row in file.read_text().split("\n")[1:200]:
            assert not row or row not in sent


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COMMAND, *arguments],
        env={**os.environ, "COLUMNS": "300", **variables},
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=120,
        check=False,
    )


def test_check_warns_of_a_model_that_does_not_answer(own_dir: Path) -> None:
    with ScriptedEndpoint() as endpoint:
        endpoint.go()
        done = run("check", "--port", "1", "--data-dir", str(own_dir), **lm_settings(endpoint))
    assert "language model" in done.stdout
    assert "degraded: down" in done.stdout


def test_a_server_does_not_start_with_another_model(own_dir: Path) -> None:
    with ScriptedEndpoint() as endpoint:
        endpoint.models = [{"id": "other/model"}]
        done = run("serve", "--port", "0", "--data-dir", str(own_dir), **lm_settings(endpoint))
    assert done.returncode == 1
    assert f"serves other/model, not {MODEL}" in done.stderr


@pytest.mark.parametrize(
    "wrong", [{"URL": "ftp://host/v1"}, {"URL": "http://user:pass@host/v1"}, {"MODE": "guess"}]
)
def test_settings_of_the_model_are_checked(own_dir: Path, wrong: dict[str, str]) -> None:
    with ScriptedEndpoint() as endpoint:
        done = run("check", "--data-dir", str(own_dir), **lm_settings(endpoint, **wrong))
    assert done.returncode == 1
    assert "settings: instrument" in done.stderr


def test_a_model_without_an_address_is_refused(own_dir: Path) -> None:
    done = run("check", "--data-dir", str(own_dir), REWARD_SERVER_INSTRUMENT__KIND="lm")
    assert done.returncode == 1
    assert "url" in done.stderr
