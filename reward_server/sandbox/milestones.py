"""Milestones in the output of a running program.

Every milestone of a job has a random token of its own, made after the model wrote its code. The
marker writes it to the error stream when the program reaches it, and the scanner removes it from
the stream again. Text that merely looks like progress is only text.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from reward_server.model import Milestone

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

_TOKEN_BYTES = 16
_EDGE = b"\x1e"

_BUILDS_ON: Mapping[Milestone, tuple[Milestone, ...]] = {
    Milestone.IMPORTED_PACKAGES: (),
    Milestone.LOADED_DATA: (Milestone.IMPORTED_PACKAGES,),
    Milestone.DEFINED_MODEL: (Milestone.IMPORTED_PACKAGES,),
    Milestone.TRAINING_LOSS: (Milestone.LOADED_DATA, Milestone.DEFINED_MODEL),
    Milestone.TRAINED_MODEL: (Milestone.LOADED_DATA, Milestone.DEFINED_MODEL),
    Milestone.TESTING_LOSS: (Milestone.LOADED_DATA, Milestone.DEFINED_MODEL),
    Milestone.PREDICTED_TEST_LABELS: (Milestone.LOADED_DATA, Milestone.TRAINED_MODEL),
}


def make_tokens(milestones: Iterable[Milestone]) -> dict[Milestone, bytes]:
    """Draw a fresh token for each milestone; all start alike and are equally long."""
    nonce = secrets.token_hex(_TOKEN_BYTES).encode()
    return {
        milestone: _EDGE + nonce + secrets.token_hex(_TOKEN_BYTES).encode() + b"\n"
        for milestone in milestones
    }


def count_earned(
    reached: Sequence[Milestone], placed: Collection[Milestone]
) -> tuple[Milestone, ...]:
    """Return the milestones that count: each once, and after the steps it builds on.

    A step for which this program has no marker is not required.
    """
    earned: list[Milestone] = []
    for milestone in reached:
        missing = {m for m in _BUILDS_ON[milestone] if m in placed} - set(earned)
        if milestone not in earned and not missing:
            earned.append(milestone)
    return tuple(sorted(earned))


class MarkerScanner:
    """Finds tokens in a stream in bounded memory and linear time, and removes them."""

    def __init__(self, tokens: Mapping[Milestone, bytes]) -> None:
        self._tokens = {token: milestone for milestone, token in tokens.items()}
        sample = next(iter(self._tokens), b"")
        self._size = len(sample)
        self._start = sample[: len(_EDGE) + 2 * _TOKEN_BYTES]
        self._buffer = b""
        self.reached: list[Milestone] = []

    def feed(self, chunk: bytes) -> bytes:
        """Take the next bytes of the stream and return those that are the program's own."""
        if not self._start:
            return chunk
        data = self._buffer + chunk
        clean: list[bytes] = []
        position = 0
        while (found := data.find(self._start, position)) >= 0:
            end = found + self._size
            if end > len(data):
                break
            milestone = self._tokens.get(data[found:end])
            if milestone is None:
                clean.append(data[position : found + 1])
                position = found + 1
            else:
                self.reached.append(milestone)
                clean.append(data[position:found])
                position = end
        keep_from = found if found >= 0 else self._possible_start(data, position)
        clean.append(data[position:keep_from])
        self._buffer = data[keep_from:]
        return b"".join(clean)

    def finish(self) -> bytes:
        """Return what is still buffered at the end of the stream."""
        buffer, self._buffer = self._buffer, b""
        return buffer

    def _possible_start(self, data: bytes, position: int) -> int:
        window = max(position, len(data) - len(self._start) + 1)
        edge = data.rfind(_EDGE, window)
        return edge if edge >= 0 and self._start.startswith(data[edge:]) else len(data)
