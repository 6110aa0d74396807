"""How a client behaves, in one value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

import httpx

if TYPE_CHECKING:
    import ssl

HERE = "http://127.0.0.1:8000"


class OptionFields(TypedDict, total=False):
    """What may be said about a client besides where its server is; see `Options`."""

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

    `deadline_seconds` is for a call that names none: six hours are more than a batch should queue,
    and the end of a run that would hang. `outage_seconds` is how long a server may be away before
    the samples that wait for it are given up; a restart takes less. `resubmissions` is how often a
    job that the server itself lost is sent again: the server has tried several times by then, so
    one more is for a machine that was replaced, and many would hide one that is broken.
    `cancel_on_abandon` cancels the job of a call that was cancelled or ran out of time. Submissions
    use up to `connections` connections; waiting, however much is outstanding, needs three more,
    and everything else two.

    Proxies, certificates and passwords named in the environment are not used: clusters set
    `HTTP_PROXY` for the internet, and a reward server on loopback or next door is not there. A
    `proxy` or certificates (`verify`) are given here.
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
    """Return the address of a server.

    Raises:
        ValueError: when it is none; trying it again and again would not help.
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
