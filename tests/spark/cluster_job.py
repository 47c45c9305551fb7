"""A job that knows nothing of where it runs: `cogwork pipeline run` gives it all it needs."""

import sys

executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1  # noqa: F821
rows = source("in", "offset bigint, body binary", minPartitions="4")  # noqa: F821
sink(  # noqa: F821
    rows.selectExpr("cast(body as string) as subject", "body"), "stream/out", transactionId="job"
)
query = (
    live("out", "body binary", startingOffsets="earliest")  # noqa: F821
    .writeStream.format("cogwork")
    .options(url=url, path="stream/again", checkpointLocation=sys.argv[1])  # noqa: F821
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
total = source("again").selectExpr("sum(cast(cast(body as string) as int)) as total").first().total  # noqa: F821
sys.stdout.write(f"{executors} executors, total {total}\n")
