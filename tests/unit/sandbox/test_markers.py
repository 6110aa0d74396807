from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_server.model import Milestone
from reward_server.sandbox.milestones import MarkerScanner, count_earned, make_tokens

TOKENS = make_tokens(Milestone)
ANY_TOKEN = re.compile(b"|".join(map(re.escape, TOKENS.values())))
PREFIX = next(iter(TOKENS.values()))[:33]
BY_TOKEN = {token: milestone for milestone, token in TOKENS.items()}


def join(parts: list[bytes]) -> bytes:
    return b"".join(parts)


def cut(token: bytes, end: int) -> bytes:
    return token[:end]


ends = st.integers(0, 66)
pieces = st.one_of(
    st.sampled_from(sorted(TOKENS.values())),
    st.binary(max_size=80),
    st.sampled_from([b"\x1e", b"\n", PREFIX, PREFIX[:-1], PREFIX + b"0" * 32 + b"\n"]),
    st.builds(cut, st.sampled_from(sorted(TOKENS.values())), ends),
)
streams = st.lists(pieces, max_size=20).map(join)


@given(streams, st.lists(st.integers(0, 2000), max_size=20))
def test_the_cut_of_a_stream_into_chunks_makes_no_difference(
    stream: bytes, cuts: list[int]
) -> None:
    scanner = MarkerScanner(TOKENS)
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    clean = b"".join(scanner.feed(stream[start:end]) for start, end in pairwise(edges))
    clean += scanner.finish()
    assert scanner.reached == [BY_TOKEN[token] for token in ANY_TOKEN.findall(stream)]
    assert clean == ANY_TOKEN.sub(b"", stream)


@given(streams)
def test_single_bytes_are_as_good_as_one_chunk_and_little_is_held(stream: bytes) -> None:
    scanner = MarkerScanner(TOKENS)
    clean = b""
    for number in range(len(stream)):
        clean += scanner.feed(stream[number : number + 1])
        assert len(scanner._buffer) < 66
    assert clean + scanner.finish() == ANY_TOKEN.sub(b"", stream)


@pytest.mark.parametrize("filler", [b"\x1e", PREFIX, b"A"], ids=["edges", "starts", "text"])
def test_hostile_streams_are_scanned_in_bounded_memory(filler: bytes) -> None:
    scanner = MarkerScanner(TOKENS)
    chunk = filler * (65536 // len(filler))
    passed = 0
    for _ in range(50):
        passed += len(scanner.feed(chunk))
        assert len(scanner._buffer) < 66
    assert passed + len(scanner.finish()) == 50 * len(chunk)
    assert scanner.reached == []


def test_without_markers_the_stream_passes_untouched() -> None:
    scanner = MarkerScanner({})
    assert scanner.feed(b"\x1eabc") == b"\x1eabc"
    assert scanner.finish() == b""


def test_tokens_are_fresh_equally_long_and_distinct() -> None:
    again = make_tokens(Milestone)
    assert not set(again.values()) & set(TOKENS.values())
    assert {len(token) for token in TOKENS.values()} == {66}
    assert len(set(TOKENS.values())) == len(Milestone)
    assert len({token[:33] for token in TOKENS.values()}) == 1


ALL = list(Milestone)


@pytest.mark.parametrize(
    ("reached", "placed", "earned"),
    [
        ([], [], []),
        ([1, 2, 3, 5, 4, 6, 7], range(1, 8), [1, 2, 3, 4, 5, 6, 7]),
        ([1, 1, 1], [1], [1]),
        ([2, 1], [1, 2], [1]),  # too early does not count …
        ([2, 1, 2], [1, 2], [1, 2]),  # … but coming by again does
        ([2], [1, 2], []),
        ([2], [2], [2]),  # what has no marker is not asked for
        ([1, 3, 2], [1, 2, 3], [1, 2, 3]),
        ([1, 2, 5], [1, 2, 3, 5], [1, 2]),
        ([1, 2, 5], [1, 2, 5], [1, 2, 5]),
        ([1, 2, 3, 7], [1, 2, 3, 5, 7], [1, 2, 3]),
        ([7], [7], [7]),
    ],
)
def test_what_counts(reached: list[int], placed: list[int], earned: list[int]) -> None:
    counted = count_earned([Milestone(n) for n in reached], {Milestone(n) for n in placed})
    assert list(counted) == earned


@given(st.lists(st.sampled_from(ALL)), st.sets(st.sampled_from(ALL)))
def test_more_progress_never_counts_less(reached: list[Milestone], placed: set[Milestone]) -> None:
    placed |= set(reached)
    earned = [count_earned(reached[:end], placed) for end in range(len(reached) + 1)]
    assert all(set(before) <= set(now) for before, now in pairwise(earned))
    assert set(earned[-1]) <= set(reached)
    assert list(earned[-1]) == sorted(set(earned[-1]))
