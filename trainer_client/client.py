"""A thin client of the reward server: one call per submission, and no made-up numbers.

A program's failure comes back as an answer with its reward. A failure of the server is
raised, so that a trainer can drop the sample instead of learning from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import httpx

if TYPE_CHECKING:
    from types import TracebackType

Answer = dict[str, Any]
_CONNECT_SECONDS = 10.0


class RewardServerError(Exception):
    """There is no reward for this submission."""

    def __init__(self, message: str, *, status: int | None, kind: str, retryable: bool) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.retryable = retryable


class RewardClient:
    """Talks to one reward server; safe to share between threads."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        api_key: str | None = None,
        timeout_seconds: float | None = None,
    ) -> None:
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        timeout = httpx.Timeout(timeout_seconds, connect=_CONNECT_SECONDS)
        self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def score(self, task_id: str, **fields: object) -> Answer:
        """Have one submission scored; `completion` or `code` is among the fields.

        Raises:
            RewardServerError: when there is no reward.
        """
        return self._ask("POST", "/v1/score", json={"task_id": task_id, **fields})

    def prompts(self, task_id: str, **fields: object) -> Answer:
        """Get prompts of a task: from scratch, and to improve on what a run did before.

        Raises:
            RewardServerError: when there are none.
        """
        return self._ask("POST", "/v1/prompts", json={"task_id": task_id, **fields})

    def get(self, path: str, **query: object) -> Answer:
        """Read anything else the server shows.

        Raises:
            RewardServerError: when it shows nothing there.
        """
        given = {name: str(value) for name, value in query.items() if value is not None}
        return self._ask("GET", path, params=given)

    def _ask(self, method: str, path: str, **content: Any) -> Answer:  # noqa: ANN401
        try:
            response = self._http.request(method, path, **content)
        except httpx.HTTPError as error:
            message = f"the reward server does not answer: {error}"
            raise RewardServerError(
                message, status=None, kind="unreachable", retryable=True
            ) from error
        if response.is_success:
            answer: Answer = response.json()
            return answer
        raise _problem(response)


def _problem(response: httpx.Response) -> RewardServerError:
    try:
        document = response.json()
    except ValueError:
        document = {}
    return RewardServerError(
        str(document.get("detail", response.reason_phrase)),
        status=response.status_code,
        kind=str(document.get("kind", "unknown")),
        retryable=bool(document.get("retryable", response.is_server_error)),
    )
