"""A model behind an endpoint that writes real programs, chosen by the sample's place."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.conftest import ROOT
from tests.support.lm_endpoints import ScriptedEndpoint, respond
from trainer_client.evaluate.plan import KINDS, SampleSlot

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from pathlib import Path

    Write = Callable[[SampleSlot], str]

TASK = "spooky-author-identification"
SAMPLE = f"/workdir/{TASK}/prepared/public/sample_submission.csv"
MOST_SAMPLES = 8
PLACES = [
    SampleSlot(TASK, seed, kind, index)
    for seed in range(3)
    for kind in KINDS
    for index in range(MOST_SAMPLES)
]
BY_SEED = {slot.sampling_seed(): slot for slot in PLACES}

COPY = f'import shutil\nshutil.copy("{SAMPLE}", "submission.csv")\n'
SKEWED = f"""import csv
with open("{SAMPLE}") as given, open("submission.csv", "w") as made:
    header, *rows = csv.reader(given)
    csv.writer(made).writerows([header, *([row[0], 0.98, 0.01, 0.01] for row in rows)])
"""
CRASH = "import nothing_of_that_name\n"


def block(code: str) -> str:
    return f"A plan.\n\n```python\n{code}```\n"


@dataclass
class Model:
    """Answers with what `write` says for a place; `asked` has the places, in order."""

    write: Write
    asked: list[SampleSlot] = field(default_factory=list)

    async def __call__(self, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        slot = BY_SEED[body["seed"]]
        self.asked.append(slot)
        message = {"role": "assistant", "content": self.write(slot)}
        usage = {"prompt_tokens": 7, "completion_tokens": 5}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        writer.write(respond(json.dumps({"choices": [choice], "usage": usage}).encode()))
        await writer.drain()


@dataclass(frozen=True)
class EvaluateCommand:
    """The command line of an evaluation, as far as it stays the same."""

    server: str
    endpoint: ScriptedEndpoint
    out: Path

    def words(self, *extra: str) -> list[str]:
        words = [sys.executable, "-m", "trainer_client.evaluate", "--server", self.server]
        words += ["--endpoint", self.endpoint.url, "--model", "m", "--out", str(self.out)]
        return [*words, "--task", TASK, *extra]

    def run(self, *extra: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.words(*extra),
            cwd=ROOT,
            env=environment or None,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def start(self, *extra: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.words(*extra),
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def lines(self, name: str = "samples.jsonl") -> list[dict[str, Any]]:
        file = self.out / name
        texts = file.read_text().split("\n")[:-1] if file.exists() else []
        return [json.loads(text) for text in texts]

    def report(self) -> dict[str, Any]:
        report: dict[str, Any] = json.loads((self.out / "report.json").read_text())
        return report
