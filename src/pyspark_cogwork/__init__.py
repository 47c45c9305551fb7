"""Where Spark looks for the data source `cogwork`: `spark.read.format("cogwork")` needs no more."""

from __future__ import annotations

from cogwork.pipeline.spark.source import CogworkSource as DefaultSource

__all__ = ("DefaultSource",)
