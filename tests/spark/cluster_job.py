"""A job that knows nothing of where it runs: `cogwork pipeline run` gives it all it needs."""

import sys
import time

context = spark.sparkContext._jsc.sc()
until_s = time.monotonic() + 60
while (executors := context.getExecutorMemoryStatus().size() - 1) < 2:  # they are being started
    assert time.monotonic() < until_s
    time.sleep(0.1)
rows = source("in", "offset bigint, body binary", minPartitions="4")
sink(rows.selectExpr("cast(body as string) as subject", "body"), "stream/out", transactionId="job")
query = (
    live("out", "body binary", startingOffsets="earliest")
    .writeStream.format("cogwork")
    .options(url=url, path="stream/again", checkpointLocation=sys.argv[1])
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
sys.stdout.write(f"{executors} executors\n")
