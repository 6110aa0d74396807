"""The options of a client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

import httpx

if TYPE_CHECKING:
    import ssl

DEFAULT_URL = "http://127.0.0.1:8000"


class OptionFields(TypedDict, total=False):
    """The keyword arguments of a client; see `Options`."""

    deadline_seconds: float
    outage_seconds: float
    resubmissions: int
    cancel_on_abandon: bool
    connections: int
    proxy: str | None
    verify: ssl.SSLContext | bool


@dataclass(frozen=True, slots=True)
class Options:
    """How a client behaves.

    - `deadline_seconds`: the limit of a call that names none. Six hours are longer than a batch
      should queue, and still end a run that would hang.
    - `outage_seconds`: how long the server may be unreachable before the client gives up the
      waiting samples. A restart takes less.
    - `resubmissions`: how often the client resubmits a job that the server lost. The server has
      retried several times by then. One more covers a replaced machine; many would hide a broken
      one.
    - `cancel_on_abandon`: cancel the job of a call that was cancelled or ran out of time.
    - `connections`: the limit for submissions. Waiting needs three more connections, however many
      jobs are pending, and everything else two.
    - `proxy`, `verify`: a proxy and certificates. The client ignores those in the environment:
      clusters set `HTTP_PROXY` for the internet, and the reward server is not there.
    """

    deadline_seconds: float = 6 * 3600.0
    outage_seconds: float = 300.0
    resubmissions: int = 1
    cancel_on_abandon: bool = False
    connections: int = 8
    proxy: str | None = None
    verify: ssl.SSLContext | bool = True

    def __post_init__(self) -> None:
        if not self.deadline_seconds > 0 or not self.outage_seconds >= 0:
            message = "deadline_seconds must be above 0, outage_seconds at least 0"
            raise ValueError(message)
        if self.resubmissions < 0 or self.connections < 1:
            message = "resubmissions must be at least 0, connections at least 1"
            raise ValueError(message)


def check_url(url: str) -> str:
    """Return a server's URL if it is valid.

    Raises:
        ValueError: it is not an HTTP URL.
    """
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        message = f"{url!r} is not an address: {error}"
        raise ValueError(message) from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        message = f"{url!r} is not an address: it must begin with http:// or https://"
        raise ValueError(message)
    return url
