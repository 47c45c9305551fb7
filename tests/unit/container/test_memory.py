"""Memory goes back to the system once a burst is over."""

from __future__ import annotations

import ctypes

import pytest

from cogwork.container import memory
from cogwork.container.memory import GROWTH_BYTES, QUIET_BYTES, Memory, resident_bytes

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
