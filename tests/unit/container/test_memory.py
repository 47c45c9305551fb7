"""Memory goes back to the system once a burst is over."""

from __future__ import annotations

import ctypes
import resource
from itertools import pairwise

import pytest

from cogwork.container.connections import memory
from cogwork.container.connections.memory import (
    AGAIN_S,
    GROWTH_BYTES,
    PAUSE_MAX,
    QUIET_BYTES,
    Memory,
    resident_bytes,
)

BLOCK_BYTES = 64 * 1024
BLOCKS = 1000


def test_what_a_burst_has_left_is_given_back() -> None:
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "malloc_trim"):
        pytest.skip("this allocator cannot be asked")
    libc.malloc.restype = ctypes.c_void_p
    libc.free.argtypes = [ctypes.c_void_p]
    libc.malloc_trim(0)
    kept = Memory()
    blocks = []
    for _ in range(BLOCKS + 1):
        block = libc.malloc(ctypes.c_size_t(BLOCK_BYTES))
        ctypes.memset(block, 1, BLOCK_BYTES)
        blocks.append(block)
    pin = blocks.pop()  # at the end, it keeps the heap from shrinking by itself
    for block in blocks:
        libc.free(block)
    grown_bytes = resident_bytes()
    assert kept.sweep(held_bytes=0)
    assert grown_bytes - resident_bytes() > BLOCKS * BLOCK_BYTES // 2
    assert not kept.sweep(held_bytes=0), "nothing has grown since"
    libc.free(pin)


def test_during_a_burst_nothing_is(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = iter((0, 10 * GROWTH_BYTES, 10 * GROWTH_BYTES))
    monkeypatch.setattr(memory, "resident_bytes", lambda: next(sizes))
    kept = Memory()
    assert not kept.sweep(held_bytes=QUIET_BYTES + 1)


def test_what_is_taken_again_at_once_is_given_back_more_and_more_rarely(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes: list[int] = [0]
    monkeypatch.setattr(memory, "resident_bytes", lambda: sizes[-1])
    kept = Memory()
    given_back: list[int] = []
    second = 0
    while len(given_back) < 7:
        second += 1
        sizes.append(sizes[-1] + 2 * GROWTH_BYTES)
        if kept.sweep(held_bytes=0):
            given_back.append(second)
    pauses = [after - before for before, after in pairwise(given_back)]
    assert pauses == sorted(pauses)
    assert pauses[0] == 2, "at first it is tried again soon"
    assert pauses[-1] == PAUSE_MAX + 1, "and never less often than that"
    for _ in range(PAUSE_MAX + 1):
        assert not kept.sweep(held_bytes=0), "nothing has grown since"
    sizes.append(sizes[-1] + 2 * GROWTH_BYTES)
    assert kept.sweep(held_bytes=0), "after a quiet time it is as at first"


def test_what_is_freed_long_after_a_burst_is_given_back_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes: list[int] = [0]
    monkeypatch.setattr(memory, "resident_bytes", lambda: sizes[-1])
    kept = Memory()
    sizes.append(2 * GROWTH_BYTES)
    assert kept.sweep(held_bytes=0), "in the middle of it, when there is little to give"
    given_back = [second for second in range(1, 1000) if kept.sweep(held_bytes=0)]
    assert given_back == list(AGAIN_S), "and no more: it has grown for good"


def test_the_end_of_the_heap_is_kept_between_bursts() -> None:
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "malloc_trim"):
        pytest.skip("there is no malloc_trim: what is kept is a setting of glibc's allocator")
    libc.malloc.restype = ctypes.c_void_p
    libc.free.argtypes = [ctypes.c_void_p]
    Memory()
    faults = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        blocks = [libc.malloc(ctypes.c_size_t(BLOCK_BYTES)) for _ in range(BLOCKS // 2)]
        for block in blocks:
            ctypes.memset(block, 1, BLOCK_BYTES)
        for block in reversed(blocks):
            libc.free(block)
        faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    pages = BLOCKS // 2 * BLOCK_BYTES // resource.getpagesize()
    assert max(faults[1:]) < pages // 10, f"page faults of three bursts: {faults}"
