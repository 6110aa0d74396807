"""A training run, for trainers that hand over rows of a data set and what the policy wrote.

    run = Run.from_environment(run_id="spooky-1")
    scored = await run.score(row, completion)
    reward, logged = scored.answer.reward, scored.numbers()

A row names its task (`task_id`) and, if its prompt asked to improve on a solution, that solution
(`parent_id`), as `POST /v1/prompts` does. Rows with `is_validation` belong to a run of their own,
whose programs are nobody's parents, and go first, because the trainer waits for all of them. The
API key comes from the environment only, because trainers write their configuration to logs.
"""

from __future__ import annotations

import asyncio
import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, TypedDict, Unpack

from trainer_client.client.asynchronous import AsyncRewardClient
from trainer_client.client.blocking import RewardClient
from trainer_client.client.options import DEFAULT_URL, check_url
from trainer_client.client.submissions import Submission
from trainer_client.measures import ScoredSample

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trainer_client.client.options import OptionFields

    Completion = str | Sequence[Mapping[str, object]]

API_KEY = "REWARD_SERVER_API_KEY"
URL = "REWARD_SERVER_URL"
RUN_ID = "REWARD_SERVER_RUN_ID"

_END_CHARACTERS = 200
_END = re.compile(
    r"(?:(?:<[|\uff5c][^|<>\uff5c]{1,40}[|\uff5c]>|</s>|<eos>|<pad>|<end_of_turn>)\s*)+\Z"
)


class RunFields(TypedDict, total=False):
    """The keyword arguments of a run; see `Run`."""

    url: str
    run_id: str
    wall_seconds: float | None
    deadline_seconds: float
    outage_seconds: float


@dataclass(frozen=True, slots=True)
class Run:
    """A run and its reward server.

    `deadline_seconds` limits the whole wait for one sample, `outage_seconds` how long the server
    may be unreachable meanwhile. `wall_seconds` is a time limit for programs below their task's.
    """

    url: str = DEFAULT_URL
    run_id: str = "default"
    wall_seconds: float | None = None
    deadline_seconds: float = 6 * 3600.0
    outage_seconds: float = 300.0

    def __post_init__(self) -> None:
        check_url(self.url)

    @classmethod
    def from_environment(cls, **fields: Unpack[RunFields]) -> Self:
        """Return a run; `REWARD_SERVER_URL` and `REWARD_SERVER_RUN_ID` are the defaults.

        Raises:
            ValueError: the URL is not valid.
        """
        named: RunFields = {}
        if url := os.environ.get(URL):
            named["url"] = url
        if run_id := os.environ.get(RUN_ID):
            named["run_id"] = run_id
        return replace(cls(**named), **fields)

    def async_client(self) -> AsyncRewardClient:
        """Return a client for one event loop. It cancels the jobs of abandoned samples."""
        return AsyncRewardClient(self.url, os.environ.get(API_KEY), **self._options())

    def client(self) -> RewardClient:
        """Return a client for any thread."""
        return RewardClient(self.url, os.environ.get(API_KEY), **self._options())

    def shared_async_client(self) -> AsyncRewardClient:
        """Return the client of this run that the whole event loop shares."""
        for loop in [loop for loop in _of_loops if loop.is_closed()]:
            del _of_loops[loop]
        clients = _of_loops.setdefault(asyncio.get_running_loop(), {})
        return clients.get(self) or clients.setdefault(self, self.async_client())

    def shared_client(self) -> RewardClient:
        """Return the client of this run that all threads of the process share."""
        return _of_process.get(self) or _of_process.setdefault(self, self.client())

    def submission(
        self,
        row: Mapping[str, object],
        completion: Completion,
        *,
        step: int | None = None,
        name: str | None = None,
    ) -> Submission:
        """Return the submission of a completion for a row.

        With a step and a name that is unique within it, the program runs only once, even if
        several processes of the trainer submit the sample.

        Raises:
            ValueError: the row names no task.
        """
        task_id, parent_id = row.get("task_id"), row.get("parent_id")
        if not task_id:
            message = f"a row names no task_id; it has {sorted(row)}"
            raise ValueError(message)
        is_validation = bool(row.get("is_validation"))
        run_id = f"{self.run_id}/validation" if is_validation else self.run_id
        return Submission(
            str(task_id),
            completion=text_of(completion),
            run_id=run_id,
            step=step,
            sample_id=name,
            parent_id=str(parent_id) if parent_id else None,
            prompt_kind="improve" if parent_id else "scratch",
            wall_seconds=self.wall_seconds,
            priority="evaluation" if is_validation else None,
            idempotency_key=f"{run_id}/{step}/{name}" if name and step is not None else None,
        )

    async def score(
        self,
        row: Mapping[str, object],
        completion: Completion,
        *,
        step: int | None = None,
        name: str | None = None,
    ) -> ScoredSample:
        """Score a completion for a row; `submission` describes the arguments.

        Raises:
            RewardServerError: there is no reward.
            ValueError: the row names no task.
        """
        submission = self.submission(row, completion, step=step, name=name)
        answer = await self.shared_async_client().score(**submission.body())
        return ScoredSample(answer, submission.parent_id is not None)

    def score_blocking(self, row: Mapping[str, object], completion: Completion) -> ScoredSample:
        """Score a completion for a row from any thread.

        Raises:
            RewardServerError: there is no reward.
            ValueError: the row names no task.
        """
        submission = self.submission(row, completion)
        answer = self.shared_client().score(**submission.body())
        return ScoredSample(answer, submission.parent_id is not None)

    def _options(self) -> OptionFields:
        return {
            "deadline_seconds": self.deadline_seconds,
            "outage_seconds": self.outage_seconds,
            "cancel_on_abandon": True,
        }


def text_of(completion: Completion) -> str:
    """Return the text of a completion: the last assistant message of a conversation."""
    if isinstance(completion, str):
        return completion
    texts = [one.get("content") for one in completion if one.get("role") == "assistant"]
    return str(texts[-1] or "") if texts else ""


def without_end(text: str) -> str:
    """Return a text without trailing special tokens, which some trainers decode too."""
    return text[:-_END_CHARACTERS] + _END.sub("", text[-_END_CHARACTERS:])


_of_loops: dict[asyncio.AbstractEventLoop, dict[Run, AsyncRewardClient]] = {}
_of_process: dict[Run, RewardClient] = {}
