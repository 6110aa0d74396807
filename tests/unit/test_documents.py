"""Paths, links, objects, commands, options, targets and settings in documents exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.documents import Document, find_stale

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    + list((ROOT / "docs").rglob("*.md"))
)
RIGHT = """# A heading, with `code`
See [the settings](#a-heading-with-code), [http](docs/http.md#examples), `reward_server/model.py`,
`docs/*.md`, `sandbox_images/<kind>/Dockerfile`, `reward_server.settings`,
`reward_server.settings.Settings.model_config`, `trainer_client.run:Run.from_environment`,
`make test TESTS=tests/unit`, `REWARD_SERVER_SANDBOX__KIND`, `REWARD_SERVER_LIMITS__`,
`reward_server/valid/mean`, `reward-server tasks list | show ID | prepare --twin`.

```
reward-server serve --host 0.0.0.0 --port 8000    # comments may say --anything
.venv-lm/bin/reward-server lm serve -- --an-option-of-vllm
make up a number is prose, in a block it is a command
```
"""
STALE = {
    "path": "`reward_server/rooms.py`",
    "folder": "`tests/contract/`",
    "glob": "`tests/unit/*.toml`",
    "test": "`tests/unit/test_documents.py::test_gone`",
    "link": "[a page](docs/gone.md)",
    "anchor": "[a page](README.md#no-such-heading)",
    "own anchor": "[above](#no-such-heading)",
    "module": "`reward_server.rooms`",
    "object": "`reward_server.settings.Gone`",
    "entry point": "`trainer_client.run:Gone`",
    "attribute": "`reward_server.settings.Settings.gone`",
    "target": "`make gone`",
    "variable": "`make test GONE=1`",
    "command": "`reward-server gone`",
    "sub-command": "`reward-server tasks gone`",
    "alternative": "`reward-server tasks list | gone ID`",
    "option": "`reward-server serve --gone`",
    "option of another command": "`reward-server lm serve --data-dir x`",
    "setting": "`REWARD_SERVER_GONE`",
    "nested setting": "`REWARD_SERVER_SANDBOX__GONE`",
}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_document_names_only_what_exists(path: Path) -> None:
    assert find_stale(Document(path, path.read_text(encoding="utf-8"), ROOT)) == []


def test_right_names_pass() -> None:
    text = re.sub(r"(?m)^make up.*\n", "", RIGHT)
    assert find_stale(Document(ROOT / "README.md", text, ROOT)) == [
        "docs/http.md#examples: no such heading"
    ]


@pytest.mark.parametrize("text", STALE.values(), ids=STALE)
def test_a_stale_name_is_found(text: str) -> None:
    assert len(find_stale(Document(ROOT / "README.md", f"Text {text} text.", ROOT))) == 1
