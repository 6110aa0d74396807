from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from reward_server.sandbox.output import PipeTail

if TYPE_CHECKING:
    from collections.abc import Callable


async def drain(
    data: bytes, tail: int = 100, most: int = 1 << 30, clean: Callable[[bytes], bytes] = bytes
) -> tuple[PipeTail, list[str]]:
    reader, writer = os.pipe()
    excesses: list[str] = []
    stream = PipeTail(reader, tail, most, lambda: excesses.append("excess"), clean)
    await asyncio.to_thread(write_all, writer, data)
    await stream.ended()
    return stream, excesses


def write_all(descriptor: int, data: bytes) -> None:
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


async def test_a_short_stream_is_kept_whole() -> None:
    stream, excesses = await drain(b"hello")
    assert (stream.text(), stream.total_bytes, excesses) == ("hello", 5, [])


async def test_of_a_long_stream_the_end_is_kept_and_the_rest_counted() -> None:
    stream, _ = await drain(b"A" * 1_000_000 + b"B" * 50)
    assert stream.text() == "[999950 bytes cut]\n" + "A" * 50 + "B" * 50
    assert stream.text() == "[999950 bytes cut]\n" + "A" * 50 + "B" * 50


async def test_memory_is_bounded_by_the_tail() -> None:
    stream, _ = await drain(b"A" * 3_000_000, tail=1000)
    assert len(stream._tail) <= 2000


async def test_the_tail_holds_what_the_filter_lets_through() -> None:
    stream, _ = await drain(b"a-b-c", clean=lambda chunk: chunk.replace(b"-", b""))
    assert stream.text(b"!") == "abc!"
    assert stream.total_bytes == 5


async def test_an_excess_is_reported_once_and_reading_continues() -> None:
    stream, excesses = await drain(b"A" * 500_000, most=100_000)
    assert (excesses, stream.exceeded, stream.total_bytes) == (["excess"], True, 500_000)


async def test_exactly_the_limit_is_no_excess() -> None:
    stream, excesses = await drain(b"A" * 1000, most=1000)
    assert (excesses, stream.exceeded) == ([], False)


async def test_a_cut_through_a_character_is_still_text() -> None:
    stream, _ = await drain("é".encode() * 1000, tail=101)
    assert stream.text() == "[1899 bytes cut]\n\ufffd" + "é" * 50


async def test_closing_early_shuts_the_pipe_and_ends_the_wait() -> None:
    reader, writer = os.pipe()
    stream = PipeTail(reader, 10, 10, lambda: None)
    stream.close()
    stream.close()
    await stream.ended()
    try:
        os.write(writer, b"x")
    except BrokenPipeError:
        return
    finally:
        os.close(writer)
    raise AssertionError
