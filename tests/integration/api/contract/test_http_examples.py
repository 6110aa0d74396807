"""The examples of docs/http.md run unchanged, with and without failures of the server."""

from __future__ import annotations

import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import RunningServer

FOLDER = ROOT / "docs" / "examples"
EXAMPLES = {"plain_http.py": sys.executable, "plain_http.mjs": "node", "plain_http.sh": "sh"}
BUSY = {"detail": "the queue is full", "kind": "overloaded", "blame": "request", "retryable": True}


def run(name: str, url: str) -> str:
    command = shutil.which(EXAMPLES[name])
    if command is None:
        pytest.skip(f"{EXAMPLES[name]} is not installed")
    done = subprocess.run(
        [command, FOLDER / name],
        env={**os.environ, "REWARD_SERVER_URL": url, "RUN_ID": str(uuid.uuid4())},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


def assert_reported(printed: str) -> None:
    lines = printed.splitlines()
    assert lines[0].lower() == "ready: true"
    good = next(line for line in lines if line.startswith("a good program"))
    assert re.fullmatch(r"a good program: reward -1\.\d+ in 0\.\d+ s", good)
    bad = next(line for line in lines if line.startswith("a bad program"))
    assert re.fullmatch(r"a bad program: reward -10(\.0)?, failed: nonzero_exit", bad)
    items = sorted(line for line in lines if line.startswith("item "))
    assert re.fullmatch(r"item 0: reward -1\.\d+ in 0\.\d+ s", items[0])
    assert re.fullmatch(r"item 1: reward -10(\.0)?, failed: nonzero_exit", items[1])
    assert items[2:] in ([], ["item 2: no reward, drop this sample"])


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_distinguishes_program_and_server_failures(
    server: RunningServer, name: str
) -> None:
    said = run(name, server.url)
    assert_reported(said)
    assert "the same key again is the same job: true" in said.lower()


@contextmanager
def stumbling(url: str) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Stand before a server and refuse the first request of every address, as one that is full."""
    sent: list[tuple[str, str]] = []
    seen: set[str] = {"/readyz"}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            path = self.path.partition("?")[0]
            sent.append((path, self.headers.get("Idempotency-Key", "")))
            if path in seen:
                answer = httpx.request(
                    self.command,
                    url + self.path,
                    content=body,
                    headers={k: v for k, v in self.headers.items() if k != "Host"},
                    timeout=120,
                )
                self.reply(answer.status_code, answer.content)
            else:
                seen.add(path)
                self.reply(429, json.dumps(BUSY).encode())

        do_POST = do_GET  # noqa: N815  # the name that the library looks for

        def reply(self, status: int, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Retry-After", "1")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as before:
        thread = threading.Thread(target=before.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{before.server_port}", sent
        finally:
            before.shutdown()
            thread.join()


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_comes_back_with_the_same_key(server: RunningServer, name: str) -> None:
    with stumbling(server.url) as (url, sent):
        assert_reported(run(name, url))
    keys = [key for path, key in sent if path == "/v1/jobs"]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 2
    batches = [path for path, _ in sent if path in {"/v1/batches", "/v1/score/batch"}]
    assert len(batches) == 2


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_invalid_request_ends_an_example(name: str, server: RunningServer) -> None:
    with pytest.raises(AssertionError, match=r"40[45]|is wrong"):
        run(name, f"{server.url}/nowhere")


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_page_shows_the_current_text_of_the_example(name: str) -> None:
    page = (ROOT / "docs" / "http.md").read_text()
    text = (FOLDER / name).read_text()
    assert f"\n{text}```\n" in page, f"docs/http.md does not show docs/examples/{name} as it is"
