"""A job that does not end by itself: a query, and a batch whose task takes its time."""

import os
import sys
import time
from pathlib import Path

place = Path(sys.argv[1])


def linger(batches):  # noqa: ANN001, ANN201  # a job's own
    (place / "worker").write_text(str(os.getpid()))
    time.sleep(600)
    yield from batches


growing = live("in", "body binary", startingOffsets="earliest")
live_sink(growing, "stream/copies", str(place / "checkpoint")).queryName("copier").start()
sys.stdout.write("begun\n")
source("in", "offset bigint").mapInArrow(linger, "offset bigint").count()
