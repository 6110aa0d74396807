"""Models behind an OpenAI-compatible address, each of which always writes the same."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class _Handler(BaseHTTPRequestHandler):
    texts: Mapping[str, str]

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        asked: dict[str, Any] = json.loads(self.rfile.read(length))
        message = {"role": "assistant", "content": self.texts[asked["model"]]}
        body = json.dumps(
            {
                "id": "chatcmpl-1",
                "object": "chat.completion",
                "created": 1,
                "model": asked["model"],
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
            }
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving_policy(texts: Mapping[str, str]) -> Iterator[str]:
    """Serve a model for each of the texts, by its name, and give their address."""
    handler = type("Handler", (_Handler,), {"texts": texts})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()
