"""What workers are spared, without a JVM: the collector leaves out what they have loaded."""

from __future__ import annotations

import gc
import sys
from importlib.machinery import ModuleSpec

import pytest

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")

from cogwork.pipeline.spark import worker
from cogwork.pipeline.spark.worker import keep_loaded


def test_outside_of_a_worker_nothing_is_kept_from_the_collector() -> None:
    before = gc.get_freeze_count()
    keep_loaded()
    assert gc.get_freeze_count() == before


def test_a_worker_keeps_what_it_has_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", ModuleSpec(worker.DAEMON, None))
    monkeypatch.setattr(worker, "_kept", [])
    try:
        keep_loaded()
        assert gc.get_freeze_count() > 0
        later: list[object] = []
        later.append(later)
        keep_loaded()
        assert any(each is later for each in gc.get_objects()), "the collector knows it still"
    finally:
        gc.unfreeze()
