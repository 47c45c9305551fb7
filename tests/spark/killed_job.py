"""A job whose executors are killed: `cogwork pipeline run killed_job.py PLACE SEED KILLS`.

A batch and a query write into streams, then the archiver writes files; each loses some executors
at points that follow from the seed.
"""

import random
import sys
from pathlib import Path

from task_points import KillsAtOffsets, KillsAtSteps

from cogwork.pipeline.archive import Archive, Archiver, Settings
from cogwork.pipeline.archive.origin import Origin
from cogwork.pipeline.archive.workers import SparkWorkers

place, chance, kills = Path(sys.argv[1]), random.Random(int(sys.argv[2])), int(sys.argv[3])
STREAM, COLUMNS, COMMIT_ROWS = "in", "offset bigint, body binary", 1000

rows = source(STREAM, COLUMNS, minPartitions="4")
count = rows.count()

batch = KillsAtOffsets(place / "batch", chance.sample(range(count), kills))
sink(rows.mapInArrow(batch, COLUMNS).select("body"), "stream/out", transactionId="killed")

query = KillsAtOffsets(place / "query", chance.sample(range(count), kills))
growing = live(
    STREAM, COLUMNS, startingOffsets="earliest", maxOffsetsPerTrigger="2000", minPartitions="2"
)
chosen = growing.mapInArrow(query, COLUMNS).select("body")
writing = live_sink(chosen, "stream/again", str(place / "checkpoint"))
writing.trigger(availableNow=True).start().awaitTermination()

steps = KillsAtSteps(place / "steps", chance.sample(range(count // COMMIT_ROWS), kills))
with Origin(url) as origin, Archive.open(str(place / "archive"), make=True) as archive:
    workers = SparkWorkers(spark, steps)
    Archiver(origin, archive, workers, Settings(commit_rows=COMMIT_ROWS)).run(STREAM)

killed = sum(each.killed() for each in (batch, query, steps))
sys.stdout.write(f"{killed} executors were killed\n")
