"""A job for a Spark Connect server: a batch, and a query that reports how far it is."""

import subprocess
import sys
import time

checkpoint, *status = sys.argv[1:]

rows = source("in", "offset bigint, body binary", minPartitions="2")
sink(rows.selectExpr("cast(body as string) as subject", "body"), "stream/out", transactionId="job")
growing = live("out", "body binary", startingOffsets="earliest")
query = live_sink(growing, "stream/again", checkpoint).queryName("far").start()
until_s = time.monotonic() + 150
while b"far out" not in subprocess.run(status, check=True, capture_output=True).stdout:
    assert time.monotonic() < until_s
    time.sleep(1)
query.stop()
sys.stdout.write(f"{source('again').count()} of {type(spark).__module__}\n")
