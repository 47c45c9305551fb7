"""Hashes of rows: the same as Spark's."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from cogwork.pipeline.audit.hashing import add_column, row_hashes

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

ROWS = 2000


def test_rows_have_the_hashes_that_spark_gives_them(spark: SparkSession, seed: int) -> None:
    stage = random.Random(seed)

    def some(make: Callable[[], object]) -> list[object]:
        return [None if stage.random() < 0.2 else make() for _ in range(ROWS)]

    numbers = pa.array(some(lambda: stage.randrange(-(1 << 63), 1 << 63)), pa.int64())
    octets = pa.array(some(lambda: stage.randbytes(stage.randrange(100))), pa.binary())
    texts = pa.array(
        some(lambda: "".join(stage.choices("aé😀x", k=stage.randrange(20)))), pa.string()
    )
    table = pa.table({"number": numbers, "octets": octets, "text": texts})
    told = (
        spark.createDataFrame(table)
        .selectExpr(
            "xxhash64(number, octets, text) as whole",
            "xxhash64(text) as text",
            "xxhash64(number, substr(text, 1, 8)) as cut",
        )
        .toArrow()
    )
    whole, text, cut = (told[name].to_pylist() for name in ("whole", "text", "cut"))
    assert row_hashes(numbers, octets, texts).view(np.int64).tolist() == whole
    assert row_hashes(texts.dictionary_encode()).view(np.int64).tolist() == text
    assert row_hashes(texts.cast(pa.large_string())).view(np.int64).tolist() == text
    cuts = row_hashes(numbers)
    add_column(cuts, texts, characters=8)
    assert cuts.view(np.int64).tolist() == cut
    start, end = sorted(stage.sample(range(ROWS), 2))
    parts = [each.slice(start, end - start) for each in (numbers, octets, texts)]
    assert row_hashes(*parts).view(np.int64).tolist() == whole[start:end]
    part = texts.dictionary_encode().slice(start, end - start)
    assert row_hashes(part).view(np.int64).tolist() == text[start:end]
    assert len(row_hashes(texts.slice(0, 0))) == 0
