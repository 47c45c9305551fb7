"""Processors that are kept awake while there is work."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from cogwork.io.wakefulness import BUSY_SHARE, QUIET_LOOKS, Wakefulness

if TYPE_CHECKING:
    from pathlib import Path

PASSED_S = 0.2
BUSY_S = 2 * BUSY_SHARE * PASSED_S
QUIET_S = BUSY_SHARE * PASSED_S / 2


@pytest.fixture
def device(tmp_path: Path) -> Path:
    path = tmp_path / "cpu_dma_latency"
    path.touch()
    return path


def test_it_asks_the_kernel_for_no_latency_while_there_is_work(device: Path) -> None:
    wakefulness = Wakefulness(str(device))
    assert not wakefulness.is_held
    wakefulness.decide(PASSED_S, QUIET_S)
    assert not wakefulness.is_held
    device.write_bytes(b"")
    wakefulness.decide(PASSED_S, BUSY_S)
    assert wakefulness.is_held
    assert device.read_bytes() == bytes(4)
    wakefulness.release()
    assert not wakefulness.is_held


def test_processors_may_sleep_after_some_looks_without_work(device: Path) -> None:
    wakefulness = Wakefulness(str(device))
    wakefulness.decide(PASSED_S, BUSY_S)
    for _ in range(QUIET_LOOKS - 1):
        wakefulness.decide(PASSED_S, QUIET_S)
    wakefulness.decide(PASSED_S, BUSY_S)
    for _ in range(QUIET_LOOKS - 1):
        wakefulness.decide(PASSED_S, QUIET_S)
        assert wakefulness.is_held
    wakefulness.decide(PASSED_S, QUIET_S)
    assert not wakefulness.is_held
    wakefulness.decide(PASSED_S, BUSY_S)
    assert wakefulness.is_held
    wakefulness.release()


def test_what_this_process_uses_is_what_counts(device: Path) -> None:
    wakefulness = Wakefulness(str(device))
    while not wakefulness.is_held:  # its processor may be another's for a while
        end_s = time.process_time() + 0.05
        while time.process_time() < end_s:
            pass
        wakefulness.look()
    looks = 0
    while wakefulness.is_held:
        time.sleep(0.02)
        wakefulness.look()
        looks += 1
    assert looks >= QUIET_LOOKS


def test_a_kernel_without_the_file_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Wakefulness(str(tmp_path / "none"))


def test_a_file_that_becomes_unwritable_is_told_when_there_is_work(device: Path) -> None:
    wakefulness = Wakefulness(str(device))
    device.unlink()
    wakefulness.decide(PASSED_S, QUIET_S)
    with pytest.raises(FileNotFoundError):
        wakefulness.decide(PASSED_S, BUSY_S)
    assert not wakefulness.is_held
