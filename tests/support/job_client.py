"""A client of a server with jobs, for tests."""

from __future__ import annotations

import json
import shutil
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import httpx

from tests.conftest import descendants, read_line, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TASK = "spooky-author-identification"
SLOTS = 2
KEYS = {"team": "a-key-of-the-whole-team", "guest": "a-key-of-one-more-guest"}
# For servers whose programs import nothing: they start in half the time.
LEAN = {"REWARD_SERVER_SANDBOX__PRELOAD": "[]", "REWARD_SERVER_GRADE__PROCESSES": "1"}
SETTINGS = {
    **LEAN,
    "REWARD_SERVER_SANDBOX__SLOTS": str(SLOTS),
    "REWARD_SERVER_JOBS__AHEAD": "0",
    "REWARD_SERVER_CLIENTS": json.dumps(
        {"team": {"key": KEYS["team"]}, "guest": {"key": KEYS["guest"], "queued": 3}}
    ),
}


@contextmanager
def own_folder(data_dir: Path) -> Iterator[Path]:
    """Yield a new data directory with the prepared tasks and a database of its own."""
    folder = data_dir.parent / f"reward-server-own-{uuid.uuid4()}"
    folder.mkdir(mode=0o755)
    for task in data_dir.glob("*/prepared"):
        (folder / task.parent.name).symlink_to(task.parent)
    yield folder
    shutil.rmtree(folder)


class JobClient:
    """A client of a server that runs two programs at once."""

    def __init__(self, url: str, key: str, pid: int) -> None:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self.http = httpx.Client(base_url=url, timeout=120, headers=headers)
        self._pid = pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def submit(self, code: str, **fields: object) -> str:
        response = self.post(code, **fields)
        assert response.status_code == 202, response.text
        job_id: str = response.json()["job_id"]
        return job_id

    def post(self, code: str, **fields: object) -> httpx.Response:
        return self.http.post("/v1/jobs", json=item(code, **fields))

    def get(self, job_id: str, seconds: float = 60) -> httpx.Response:
        return self.http.get(f"/v1/jobs/{job_id}", params={"wait_seconds": seconds})

    def answer(self, job_id: str) -> dict[str, Any]:
        response = self.get(job_id)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    def cancel(self, job_id: str) -> str:
        status: str = self.http.delete(f"/v1/jobs/{job_id}").json()["status"]
        return status

    def fill(self, seconds: float) -> list[str]:
        """Start a program in every slot, and wait until they run."""
        marks = [f"{seconds + n / 1000:.3f}" for n in range(SLOTS)]
        jobs = [self.submit(nap(mark)) for mark in marks]
        for mark in marks:
            self.wait_for_program(mark)
        return jobs

    def wait_for_program(self, mark: str) -> None:
        wait_until(lambda: self.runs(mark))

    def runs(self, mark: str) -> bool:
        """Return whether the program that sleeps for so many seconds is running."""
        return any(mark.encode() in read_line(pid) for pid in descendants(self._pid))

    def solutions(self, run_id: str) -> list[dict[str, Any]]:
        listed = self.http.get("/v1/solutions", params={"run_id": run_id}).json()
        solutions: list[dict[str, Any]] = listed["solutions"]
        return solutions

    def ends_in_order(self, run_ids: list[str]) -> list[str]:
        """Return the run of each stored solution, in the order of their ends."""
        lines = [
            (line["created_at"], run_id)
            for run_id in run_ids
            for line in self.http.get("/v1/solutions", params={"run_id": run_id}).json()[
                "solutions"
            ]
        ]
        return [run_id for _, run_id in sorted(lines)]


def nap(seconds: float | str) -> str:
    return f"import subprocess\nsubprocess.run(['sleep', '{seconds}'])\nprint('through')\n"


def item(code: str, **fields: object) -> dict[str, object]:
    return {"task_id": TASK, "code": code, **fields}
