"""Schemathesis tests a running server against its OpenAPI document.

FUZZ_EXAMPLES and FUZZ_SEED make a longer run, or another one; what is repeatable is which requests
are drawn, not how soon programs end.
"""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT, start_server, stop_server
from tests.support.job_client import LEAN, own_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "15"))
SEED = int(os.environ.get("FUZZ_SEED", "1"))
KEY = "a-key-for-those-who-try"
# All checks are on. Two things are bounded: what follows from answers (a few chains of three
# requests instead of hundreds of six), and what is kept between runs, which is nothing.
CONFIG = f"""
[generation]
database = "none"
max-examples = {EXAMPLES}
[phases.stateful]
max-steps = 3
[phases.stateful.generation]
max-examples = {EXAMPLES}
[checks]
enabled = true
"""


def fuzz(url: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Try a server against its document; the status is 0 when nothing was found."""
    config = folder / "schemathesis.toml"
    config.write_text(CONFIG)
    command = Path(sys.executable).with_name("schemathesis")
    words = [f"--config-file={config}", "run", f"{url}/openapi.json", f"--seed={SEED}"]
    words += [
        "--header",
        f"Authorization: Bearer {KEY}",
        "--request-timeout=60",
        "--no-color",
        "--workers=1",
    ]
    hooks = {
        "SCHEMATHESIS_HOOKS": "tests.integration.api.contract.fuzzing_hooks",
        "PYTHONPATH": str(ROOT),
    }
    return subprocess.run(
        [command, *words, *options],
        env={**os.environ, **hooks},
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )


@pytest.fixture
def guarded(data_dir: Path, tmp_path: Path) -> Iterator[str]:
    """Start a server that asks for a key, in a folder that nobody else looks at."""
    with own_folder(data_dir) as folder:
        settings = {**LEAN, "REWARD_SERVER_API_KEY": KEY}
        process, url = start_server(folder, tmp_path / "log", settings)
        try:
            yield url
        finally:
            stop_server(process)


def test_the_server_conforms_to_its_document(guarded: str, tmp_path: Path) -> None:
    done = fuzz(guarded, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads((ROOT / "docs" / "openapi.json").read_text())
    count = sum(len(methods) for methods in document["paths"].values())
    assert f"{count} selected / {count} total" in done.stdout
    log = (tmp_path / "log").read_text()
    assert "Traceback" not in log, log


def _serve(answer: tuple[int, str]) -> http.server.ThreadingHTTPServer:
    """Serve the true document, and one and the same answer wherever it leads."""
    document = (ROOT / "docs" / "openapi.json").read_bytes()

    class FuzzHandler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            is_document = self.path == "/openapi.json"
            status, body = (200, document) if is_document else (answer[0], answer[1].encode())
            is_stream = self.path.endswith("/score/batch")
            self.send_response(status)
            self.send_header("Content-Type", f"application/{'x-ndjson' if is_stream else 'json'}")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815  # the name that the library looks for

        def log_message(self, *_: object) -> None:
            pass

    return http.server.ThreadingHTTPServer(("127.0.0.1", 0), FuzzHandler)


@pytest.mark.parametrize(
    ("path", "status", "body", "found"),
    [
        ("/livez", 500, "{}", "Server error"),
        ("/livez", 200, '{"alive": true, "folder": "/root"}', "Response violates schema"),
        ("/livez", 418, '{"alive": true}', "Undocumented status code"),
        ("/score/batch", 200, '{"index": 0}', "Field required"),
        ("/v1/tasks", 200, '{"tasks": []}', "API accepts requests without authentication"),
    ],
)
def test_a_server_that_violates_its_document_is_detected(
    tmp_path: Path, path: str, status: int, body: str, found: str
) -> None:
    with _serve((status, body)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}"
            done = fuzz(url, tmp_path, "--include-path", path)
        finally:
            server.shutdown()
            thread.join()
    assert done.returncode == 1, done.stdout + done.stderr
    assert found in done.stdout, done.stdout
